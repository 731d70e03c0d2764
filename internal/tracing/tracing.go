package tracing

import (
	"context"
	"fmt"
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
	// scope is what spans name as their maker.
	scope = "github.com/environment-broker/environment-broker"
	// lastExport bounds how long the end of a service waits for its last spans to be sent.
	lastExport = 5 * time.Second
)

// Tracing is where a service tells its spans. A nil Tracing is one that is off: all its methods may be called.
type Tracing struct {
	provider *sdktrace.TracerProvider
	tracer   trace.Tracer
	sampler  sdktrace.Sampler
}

// New returns where the service tells its spans: nil when the configuration names no endpoint.
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

	return NewWith(sdktrace.NewBatchSpanProcessor(outspoken{exporter, log}), config.Sample, named), nil
}

// NewWith returns a Tracing whose spans go to the processor, for tests.
func NewWith(processor sdktrace.SpanProcessor, sample float64, named *resource.Resource) *Tracing {
	sampler := sdktrace.TraceIDRatioBased(sample)
	provider := sdktrace.NewTracerProvider(
		sdktrace.WithSpanProcessor(processor), sdktrace.WithResource(named), sdktrace.WithIDGenerator(identities{}),
		sdktrace.WithSampler(sdktrace.ParentBased(sampler)),
	)

	return &Tracing{provider: provider, tracer: provider.Tracer(scope), sampler: sampler}
}

// Part sends what is left when a service stops. It is the first of a service's parts: the others tell spans until they have ended.
func (t *Tracing) Part() lifecycle.Part {
	return lifecycle.Part{Name: "tracing", Run: func(ctx context.Context) error {
		<-ctx.Done()

		return t.Close(context.WithoutCancel(ctx))
	}}
}

// Close sends what is left.
func (t *Tracing) Close(ctx context.Context) error {
	if t == nil {
		return nil
	}

	ctx, cancel := context.WithTimeout(ctx, lastExport)
	defer cancel()

	if err := t.provider.Shutdown(ctx); err != nil {
		return fmt.Errorf("sending the last spans: %w", err)
	}

	return nil
}

// outspoken tells the service's log what could not be sent. Spans are not worth more: the batch is gone, and the service goes on.
type outspoken struct {
	sdktrace.SpanExporter

	log logrus.FieldLogger
}

// ExportSpans implements sdktrace.SpanExporter.
func (o outspoken) ExportSpans(ctx context.Context, spans []sdktrace.ReadOnlySpan) error {
	if err := o.SpanExporter.ExportSpans(ctx, spans); err != nil {
		o.log.WithError(err).WithField("spans", len(spans)).Warn("spans could not be sent")
	}

	return nil
}
