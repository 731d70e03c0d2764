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

func inMemory(sample float64) (*tracing.Tracing, *tracetest.InMemoryExporter) {
	kept := tracetest.NewInMemoryExporter()

	return tracing.NewWith(sdktrace.NewSimpleSpanProcessor(kept), sample, resource.Empty()), kept
}

const (
	otherTrace = "0af7651916cd43dd8448eb211c80319c"
	sender     = "b7ad6b7169203331"
	sent       = "00-" + otherTrace + "-" + sender + "-01"
	unwanted   = "00-" + otherTrace + "-" + sender + "-00"
)

// summary has the fields of a span that the tests compare.
type summary struct {
	Name, Trace, Parent, Status string
}

func summaries(kept *tracetest.InMemoryExporter) []summary {
	var all []summary

	for _, span := range kept.GetSpans() {
		parent := ""
		if span.Parent.IsValid() {
			parent = span.Parent.SpanID().String()
		}

		all = append(all, summary{
			Name: span.Name, Trace: span.SpanContext.TraceID().String(), Parent: parent, Status: span.Status.Description,
		})
	}

	return all
}
