package tracing_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.opentelemetry.io/otel/trace"

	"github.com/environment-broker/environment-broker/internal/tracing"
	"github.com/environment-broker/environment-broker/process"
)

const (
	operationID = "5b1f3d0e-7c2a-4d7e-9a54-0c9a3d1b2e4f"
	ownTrace    = "5b1f3d0e7c2a4d7e9a540c9a3d1b2e4f"
	otherTrace  = "0af7651916cd43dd8448eb211c80319c"
	sender      = "b7ad6b7169203331"
	sent        = "00-" + otherTrace + "-" + sender + "-01"
	unwanted    = "00-" + otherTrace + "-" + sender + "-00"
)

func TestAttemptsAreWithinTheirOperation(t *testing.T) {
	began := time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC)

	for name, test := range map[string]struct {
		reason, trace string
		sample        float64
		wantTrace     string
		wantParent    string
	}{
		"Ordered":  {"a request has ordered it: the operation is a part of its trace", sent, 1, otherTrace, sender},
		"Internal": {"nobody has: the trace has the operation's own id, so that it is found", "", 1, ownTrace, ""},
		"Rubbish":  {"what cannot be read is no trace", "rubbish", 1, ownTrace, ""},
		"Client's": {"whether a client's trace is kept is for the client to say", sent, 0, otherTrace, sender},
		"Unwanted": {"also when the client does not want it", unwanted, 1, "", ""},
		"Left out": {"what begins here is kept by its share", "", 0, "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			where, kept := inMemory(test.sample)
			operations := where.Operations()
			record := process.Record{
				ID: operationID, Kind: "provision", Trace: test.trace, State: process.Failed, CreatedAt: began, FinishedAt: began.Add(time.Minute),
				Problem: process.Problem{Message: "the quota is used up"},
			}

			// Each replica has its own; they agree without talking to each other.
			_, end := operations.Attempt(t.Context(), record, process.Attempt{Stage: "s", Step: "Order", Number: 2})
			end(process.StepFailed, "the quota is used up")
			operations.Ended(record)

			if test.wantTrace == "" {
				if spans := kept.GetSpans(); len(spans) > 0 {
					t.Errorf("%s: got %v", test.reason, spans)
				}

				return
			}

			spans := kept.GetSpans()
			if len(spans) != 2 {
				t.Fatalf("%s: got %v", test.reason, spans)
			}

			want := []told{
				{"Order", test.wantTrace, spans[1].SpanContext.SpanID().String(), "the quota is used up"},
				{"operation provision", test.wantTrace, test.wantParent, "the quota is used up"},
			}
			if diff := cmp.Diff(want, toldOf(kept)); diff != "" {
				t.Errorf("%s: -want +got\n%s", test.reason, diff)
			}

			if took := spans[1].EndTime.Sub(spans[1].StartTime); took != time.Minute {
				t.Errorf("the operation took %s, want the minute from its acceptance", took)
			}
		})
	}
}

func TestCarryTellsTheTraceOfTheContext(t *testing.T) {
	where, _ := inMemory(1)

	if line := tracing.Carry(t.Context()); line != "" {
		t.Errorf("without a trace there is nothing to carry, got %q", line)
	}

	ctx, end := where.Operations().Attempt(t.Context(), process.Record{ID: operationID, Trace: sent}, process.Attempt{Step: "Order"})
	defer end(process.Done, "")

	want := "00-" + otherTrace + "-" + trace.SpanContextFromContext(ctx).SpanID().String() + "-01"
	if line := tracing.Carry(ctx); line != want {
		t.Errorf("want %q, got %q", want, line)
	}
}
