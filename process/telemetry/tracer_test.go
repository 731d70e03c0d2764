package telemetry_test

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"

	"github.com/environment-broker/environment-broker/internal/tracing"
	"github.com/environment-broker/environment-broker/process"
	"github.com/environment-broker/environment-broker/process/telemetry"
)

const (
	operationID = "5b1f3d0e-7c2a-4d7e-9a54-0c9a3d1b2e4f"
	ownTrace    = "5b1f3d0e7c2a4d7e9a540c9a3d1b2e4f"
	otherTrace  = "0af7651916cd43dd8448eb211c80319c"
	sender      = "b7ad6b7169203331"
	sent        = "00-" + otherTrace + "-" + sender + "-01"
	unwanted    = "00-" + otherTrace + "-" + sender + "-00"
)

func inMemory(sample float64) (*tracing.Tracing, *tracetest.InMemoryExporter) {
	kept := tracetest.NewInMemoryExporter()

	return tracing.NewWith(sdktrace.NewSimpleSpanProcessor(kept), sample, resource.Empty()), kept
}

// summary has the fields of a span that the tests compare.
type summary struct{ Name, Trace, Parent, Status string }

func summaries(kept *tracetest.InMemoryExporter) []summary {
	var all []summary

	for _, span := range kept.GetSpans() {
		parent := ""
		if span.Parent.IsValid() {
			parent = span.Parent.SpanID().String()
		}

		all = append(all, summary{span.Name, span.SpanContext.TraceID().String(), parent, span.Status.Description})
	}

	return all
}

func TestAttemptsAreChildrenOfTheirOperation(t *testing.T) {
	began := time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC)

	for name, test := range map[string]struct {
		reason, trace string
		sample        float64
		wantTrace     string
		wantParent    string
	}{
		"Ordered":  {"the operation is part of the trace of its request", sent, 1, otherTrace, sender},
		"Internal": {"without a request, the trace has the ID of the operation", "", 1, ownTrace, ""},
		"Rubbish":  {"an invalid line is not a trace", "rubbish", 1, ownTrace, ""},
		"Client's": {"the client's sampling decision takes precedence", sent, 0, otherTrace, sender},
		"Unwanted": {"a client can opt out", unwanted, 1, "", ""},
		"Left out": {"a trace started here is sampled", "", 0, "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			where, kept := inMemory(test.sample)
			tracer := telemetry.NewTracer(where)
			record := process.Record{
				ID: operationID, Kind: "provision", Trace: test.trace, State: process.Failed, CreatedAt: began, FinishedAt: began.Add(time.Minute),
				Problem: process.Problem{Message: "the quota is used up"},
			}

			_, end := tracer.Attempt(t.Context(), record, process.Attempt{Stage: "s", Step: "Order", Number: 2})
			end(process.StepFailed, "the quota is used up")
			tracer.Ended(record)

			written := tracing.Parse(telemetry.Traceparent(where, record))

			if test.wantTrace == "" {
				if written.IsValid() {
					t.Errorf("%s: objects get the trace %s", test.reason, written.TraceID())
				}

				if spans := kept.GetSpans(); len(spans) > 0 {
					t.Errorf("%s: got %v", test.reason, spans)
				}

				return
			}

			spans := kept.GetSpans()
			if len(spans) != 2 {
				t.Fatalf("%s: got %v", test.reason, spans)
			}

			if written.SpanID() != spans[1].SpanContext.SpanID() || written.TraceID() != spans[1].SpanContext.TraceID() || !written.IsSampled() {
				t.Errorf("%s: objects get the span %+v, want that of the operation", test.reason, written)
			}

			want := []summary{
				{"Order", test.wantTrace, spans[1].SpanContext.SpanID().String(), "the quota is used up"},
				{"operation provision", test.wantTrace, test.wantParent, "the quota is used up"},
			}
			if diff := cmp.Diff(want, summaries(kept)); diff != "" {
				t.Errorf("%s: -want +got\n%s", test.reason, diff)
			}

			if took := spans[1].EndTime.Sub(spans[1].StartTime); took != time.Minute {
				t.Errorf("the operation took %s, want a minute from its acceptance", took)
			}
		})
	}
}

// TestSpanOfAnEndedOperation checks that only the span of a failed operation has the status error. A cancellation is a user's
// decision and not an error.
func TestSpanOfAnEndedOperation(t *testing.T) {
	began := time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC)

	for state, want := range map[process.State]codes.Code{
		process.Succeeded: codes.Unset, process.Failed: codes.Error, process.Canceled: codes.Unset,
	} {
		where, kept := inMemory(1)

		// All operations have a problem. A canceled one keeps the problem of the error that was delaying it.
		telemetry.NewTracer(where).Ended(process.Record{
			ID: operationID, Kind: "provision", State: state, CreatedAt: began, FinishedAt: began.Add(time.Minute),
			Problem: process.Problem{Message: "the quota is used up"},
		})

		spans := kept.GetSpans()
		if len(spans) != 1 || spans[0].Status.Code != want || spans[0].EndTime.Sub(spans[0].StartTime) != time.Minute {
			t.Fatalf("%s: want a span of a minute with the status %s, got %+v", state, want, spans)
		}

		if !slices.Contains(spans[0].Attributes, attribute.String("operation.outcome", string(state))) {
			t.Errorf("%s: the outcome is missing: %v", state, spans[0].Attributes)
		}
	}
}

func TestTraceID(t *testing.T) {
	on, _ := inMemory(1)
	rare, _ := inMemory(0)

	for name, test := range map[string]struct {
		reason, stored, want string
		tracing              *tracing.Tracing
	}{
		"request":      {"the operation continues the trace of its request", sent, otherTrace, on},
		"no request":   {"the operation starts a new trace", "", ownTrace, on},
		"not sampled":  {"no collector has the trace", "", "", rare},
		"unwanted":     {"the client opted out of the trace", unwanted, "", on},
		"off":          {"without tracing there is no trace", "", "", nil},
		"switched off": {"the trace was exported before tracing was turned off", sent, otherTrace, nil},
		"unreadable":   {"a later version may store a different format", "?", "", nil},
	} {
		if got := telemetry.TraceID(test.tracing, process.Record{ID: operationID, Trace: test.stored}); got != test.want {
			t.Errorf("%s: %s: got %q, want %q", name, test.reason, got, test.want)
		}
	}
}

func TestNoTracerWhenTracingIsOff(t *testing.T) {
	if telemetry.NewTracer(nil) != nil {
		t.Error("NewTracer returns a tracer although tracing is off")
	}
}

func TestCarryReturnsTheTraceOfTheContext(t *testing.T) {
	where, _ := inMemory(1)

	if line := tracing.Traceparent(t.Context()); line != "" {
		t.Errorf("a context without a trace carries %q", line)
	}

	ctx, end := telemetry.NewTracer(where).Attempt(t.Context(), process.Record{ID: operationID, Trace: sent}, process.Attempt{Step: "Order"})
	defer end(process.Done, "")

	want := "00-" + otherTrace + "-" + trace.SpanContextFromContext(ctx).SpanID().String() + "-01"
	if line := tracing.Traceparent(ctx); line != want {
		t.Errorf("want %q, got %q", want, line)
	}
}

func TestNoTraceparentWithoutTracing(t *testing.T) {
	if got := telemetry.Traceparent(nil, process.Record{ID: operationID, Trace: sent}); got != "" {
		t.Errorf("without tracing, objects get the trace %q", got)
	}
}
