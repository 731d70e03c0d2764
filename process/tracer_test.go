package process_test

import (
	"context"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/utils/clock"

	"github.com/environment-broker/environment-broker/internal/failure"
	"github.com/environment-broker/environment-broker/internal/logging"
	"github.com/environment-broker/environment-broker/process"
)

type tracedKey struct{}

// tracer is a Tracer that records its calls and adds the name of the step to the context of the attempt.
type tracer struct{ recorder }

func (t *tracer) Attempt(ctx context.Context, record process.Record, attempt process.Attempt,
) (context.Context, func(process.Outcome, string)) {
	return context.WithValue(ctx, tracedKey{}, attempt.Step), func(outcome process.Outcome, message string) {
		t.add(record.ID + " of " + record.Trace + " " + attempt.Step + " " + string(outcome) + " " + message)
	}
}

func (t *tracer) Ended(record process.Record) {
	t.add(record.ID + " of " + record.Trace + " " + string(record.State))
}

func TestTracer(t *testing.T) {
	inBubble(t, func(b *fixture) {
		tracer := &tracer{}

		asking := &step{name: "asks"}
		asking.work = func(ctx context.Context, operation operation) (operation, time.Duration, error) {
			if asking.runs() == 1 {
				return operation, 0, failure.New(failure.Transient, "not yet")
			}

			tracer.add("within " + ctx.Value(tracedKey{}).(string))

			return operation, 0, nil
		}

		config := process.DefaultConfig()
		config.Tracer = tracer

		engine, err := process.NewEngine(b.store, config, clock.RealClock{}, logging.Discard(),
			process.Process[data]{Kind: "test", Limit: limit, Stages: []process.Stage[data]{stage("only", asking)}})
		if err != nil {
			b.Fatal(err)
		}

		b.acceptNew(process.New{ID: "op-1", Kind: "test", InstanceID: "instance-1", Trace: "trace-1"})

		stop := b.start(engine)
		b.await("op-1")
		stop()

		want := []string{
			"op-1 of trace-1 asks retrying not yet", "within asks", "op-1 of trace-1 asks done ", "op-1 of trace-1 succeeded",
		}
		if diff := cmp.Diff(want, tracer.recorded()); diff != "" {
			b.Errorf("-want +got\n%s", diff)
		}
	})
}
