package tracing

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"time"

	"github.com/sirupsen/logrus"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"

	"github.com/environment-broker/environment-broker/internal/failure"
	"github.com/environment-broker/environment-broker/internal/program/lifecycle"
)

const (
	// scope is the instrumentation scope of all spans, by convention the module path.
	scope = "github.com/environment-broker/environment-broker"
	// exportTimeout limits the export of the last spans when a service stops.
	exportTimeout = 5 * time.Second
	// tracesPath is the default URL path at the collector, as defined by the OTLP specification.
	tracesPath = "/v1/traces"
)

// Config configures the collector that receives spans, and the share of traces to keep. The exporter also reads the standard
// OTEL_EXPORTER_OTLP_… variables.
type Config struct {
	Endpoint string  `env:"TRACING_ENDPOINT" help:"URL of the collector that receives spans as OTLP over HTTP, such as http://collector:4318; empty turns tracing off. The standard OTEL_… variables set headers, certificates and limits"`
	Sample   float64 `env:"TRACING_SAMPLE"   help:"share of new traces to keep, from 0 to 1; a trace that the client started is kept if the client samples it"`
}

// DefaultConfig returns the defaults: tracing is off. If only an endpoint is set, every trace is kept.
func DefaultConfig() Config { return Config{Sample: 1} }

// options returns the options of the exporter. Errors name the variable and do not quote its value, which may contain a password.
func (c Config) options() ([]otlptracehttp.Option, error) {
	if c.Sample < 0 || c.Sample > 1 {
		return nil, fmt.Errorf("APP_TRACING_SAMPLE: %g is not between 0 and 1", c.Sample)
	}

	endpoint, err := url.Parse(c.Endpoint)
	if err != nil || endpoint.Host == "" || endpoint.Scheme != "http" && endpoint.Scheme != "https" {
		return nil, errors.New("APP_TRACING_ENDPOINT: must be a URL such as http://host:4318")
	}

	if endpoint.Path == "" || endpoint.Path == "/" {
		endpoint.Path = tracesPath
	}

	return []otlptracehttp.Option{otlptracehttp.WithEndpointURL(endpoint.String())}, nil
}

// Tracing exports the spans of a service in batches, in the background. An unavailable collector never delays or fails a request
// or an operation: the queue of spans is bounded, and spans that exceed it are dropped. A nil *Tracing means that tracing is off.
type Tracing struct {
	provider *sdktrace.TracerProvider
	tracer   trace.Tracer
	sampler  sdktrace.Sampler
}

// New returns a Tracing for the named service, or nil if the configuration has no endpoint. It does not connect to the collector.
// If an export fails, the error is logged and the spans are dropped.
func New(ctx context.Context, service string, config Config, log logrus.FieldLogger) (*Tracing, error) {
	if config.Endpoint == "" {
		return nil, nil
	}

	options, err := config.options()
	if err != nil {
		return nil, err
	}

	exporter, err := otlptracehttp.New(ctx, options...)
	if err != nil {
		return nil, fmt.Errorf("APP_TRACING_ENDPOINT and the OTEL_EXPORTER_OTLP_… variables: %w", err)
	}

	named, err := resource.New(ctx,
		resource.WithAttributes(attribute.String("service.name", service)), resource.WithFromEnv(), resource.WithTelemetrySDK())
	if err != nil {
		return nil, fmt.Errorf("OTEL_RESOURCE_ATTRIBUTES: %w", err)
	}

	return NewWith(sdktrace.NewBatchSpanProcessor(loggingExporter{exporter, log}), config.Sample, named), nil
}

// NewWith returns a Tracing that passes its spans to the processor. Tests use it with an in-memory processor.
func NewWith(processor sdktrace.SpanProcessor, sample float64, named *resource.Resource) *Tracing {
	sampler := sdktrace.TraceIDRatioBased(sample)
	provider := sdktrace.NewTracerProvider(
		sdktrace.WithSpanProcessor(processor), sdktrace.WithResource(named), sdktrace.WithIDGenerator(ids{}),
		sdktrace.WithSampler(sdktrace.ParentBased(sampler)),
	)

	return &Tracing{provider: provider, tracer: provider.Tracer(scope), sampler: sampler}
}

// Start starts a span, which the caller must end. The receiver must not be nil.
func (t *Tracing) Start(ctx context.Context, name string, options ...trace.SpanStartOption) (context.Context, trace.Span) {
	return t.tracer.Start(ctx, name, options...) //nolint:spancheck // the caller ends the span
}

// Sampled reports whether a new trace with the given ID is kept. The decision depends only on the ID and the configured share, so
// it is the same on all replicas.
func (t *Tracing) Sampled(id trace.TraceID) bool {
	decision := t.sampler.ShouldSample(sdktrace.SamplingParameters{ParentContext: context.Background(), TraceID: id})

	return decision.Decision == sdktrace.RecordAndSample
}

// Part returns a lifecycle.Part that exports the remaining spans when the service stops. It must be the first part of a service,
// because the first part stops last and the other parts create spans until they have ended.
func (t *Tracing) Part() lifecycle.Part {
	return lifecycle.Part{Name: "tracing", Run: func(ctx context.Context) error {
		<-ctx.Done()

		return t.Close(context.WithoutCancel(ctx))
	}}
}

// Close exports the remaining spans and waits for at most five seconds. On a nil *Tracing it does nothing.
func (t *Tracing) Close(ctx context.Context) error {
	if t == nil {
		return nil
	}

	ctx, cancel := context.WithTimeout(ctx, exportTimeout)
	defer cancel()

	return failure.While(t.provider.Shutdown(ctx), "sending the last spans")
}

// loggingExporter logs failed exports with the service's logger. Otherwise, the SDK would print the errors to standard error.
type loggingExporter struct {
	sdktrace.SpanExporter

	log logrus.FieldLogger
}

// ExportSpans implements sdktrace.SpanExporter.
func (l loggingExporter) ExportSpans(ctx context.Context, spans []sdktrace.ReadOnlySpan) error {
	if err := l.SpanExporter.ExportSpans(ctx, spans); err != nil {
		l.log.WithError(err).WithField("spans", len(spans)).Warn("sending spans failed")
	}

	return nil
}
