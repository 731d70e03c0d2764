package tracing_test

import (
	"testing"

	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.uber.org/goleak"

	"github.com/environment-broker/environment-broker/internal/tracing"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// inMemory is a Tracing whose spans are kept.
func inMemory(sample float64) (*tracing.Tracing, *tracetest.InMemoryExporter) {
	kept := tracetest.NewInMemoryExporter()

	return tracing.NewWith(sdktrace.NewSimpleSpanProcessor(kept), sample, resource.Empty()), kept
}

// told is what the tests look at of a span.
type told struct {
	Name, Trace, Parent, Status string
}

func toldOf(kept *tracetest.InMemoryExporter) []told {
	var all []told

	for _, span := range kept.GetSpans() {
		parent := ""
		if span.Parent.IsValid() {
			parent = span.Parent.SpanID().String()
		}

		all = append(all, told{
			Name: span.Name, Trace: span.SpanContext.TraceID().String(), Parent: parent, Status: span.Status.Description,
		})
	}

	return all
}
