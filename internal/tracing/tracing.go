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

	"github.com/environment-broker/environment-broker/internal/lifecycle"
)

const (
	// scope is the instrumentation scope of all spans.
	scope = "github.com/environment-broker/environment-broker"
	// exportTimeout bounds how long a stopping service waits until its last spans are sent.
	exportTimeout = 5 * time.Second
	// tracesPath is the path of the collector, unless the endpoint names another.
	tracesPath = "/v1/traces"
)

// Config says where spans are sent.
type Config struct {
	Endpoint string  `env:"TRACING_ENDPOINT" help:"collector that gets spans by OTLP over HTTP, such as http://collector:4318; empty turns tracing off. The standard OTEL_… variables set headers, certificates and limits"`
	Sample   float64 `env:"TRACING_SAMPLE"   help:"share of the traces started here that is kept, from 0 to 1; the client decides about traces that it started"`
}

// DefaultConfig returns the defaults: tracing is off, and with an endpoint every trace is kept.
func DefaultConfig() Config { return Config{Sample: 1} }

// options returns the options of the exporter. Errors name the variable and do not repeat its value, which may hold a password.
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

// Tracing sends the spans of a service, in batches in the background. A nil Tracing is off. A collector that is down never delays or fails a
// request or an operation.
type Tracing struct {
	provider *sdktrace.TracerProvider
	tracer   trace.Tracer
	sampler  sdktrace.Sampler
}

// New returns the tracing of a service, or nil if the configuration names no endpoint. Unsent spans are logged and dropped.
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

// NewWith returns a Tracing with a span processor of the caller, for tests.
func NewWith(processor sdktrace.SpanProcessor, sample float64, named *resource.Resource) *Tracing {
	sampler := sdktrace.TraceIDRatioBased(sample)
	provider := sdktrace.NewTracerProvider(
		sdktrace.WithSpanProcessor(processor), sdktrace.WithResource(named), sdktrace.WithIDGenerator(ids{}),
		sdktrace.WithSampler(sdktrace.ParentBased(sampler)),
	)

	return &Tracing{provider: provider, tracer: provider.Tracer(scope), sampler: sampler}
}

// Start starts a span. Tracing must not be off.
func (t *Tracing) Start(ctx context.Context, name string, options ...trace.SpanStartOption) (context.Context, trace.Span) {
	return t.tracer.Start(ctx, name, options...) //nolint:spancheck // the caller ends it
}

// Sampled reports whether a new trace with the id is kept. All replicas decide alike.
func (t *Tracing) Sampled(id trace.TraceID) bool {
	decision := t.sampler.ShouldSample(sdktrace.SamplingParameters{ParentContext: context.Background(), TraceID: id})

	return decision.Decision == sdktrace.RecordAndSample
}

// Part sends the remaining spans when the service stops. It has to be the first part, so that it stops last: the other parts create spans
// until they end.
func (t *Tracing) Part() lifecycle.Part {
	return lifecycle.Part{Name: "tracing", Run: func(ctx context.Context) error {
		<-ctx.Done()

		return t.Close(context.WithoutCancel(ctx))
	}}
}

// Close sends the remaining spans.
func (t *Tracing) Close(ctx context.Context) error {
	if t == nil {
		return nil
	}

	ctx, cancel := context.WithTimeout(ctx, exportTimeout)
	defer cancel()

	if err := t.provider.Shutdown(ctx); err != nil {
		return fmt.Errorf("sending the last spans: %w", err)
	}

	return nil
}

// loggingExporter logs failed exports with the logger of the service and drops their spans.
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
