package process_test

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/environment-broker/environment-broker/internal/failure"
	"github.com/environment-broker/environment-broker/process"
	"github.com/environment-broker/environment-broker/storage"
)

var errUnavailable = errors.New("unavailable")

// alwaysFailing is a step that always returns a retryable error.
func alwaysFailing(name string) *step {
	return scripted(name, func(int) (time.Duration, error) {
		return 0, failure.Wrap(failure.Transient, errUnavailable, "the upstream is unavailable")
	})
}

func (b *fixture) skip(id, step string) bool {
	b.Helper()

	var accepted bool

	b.inTx(func(tx storage.Tx) error {
		var err error

		accepted, err = b.store.Skip(b.Context(), tx, id, process.Skip{Step: step, Reason: "the step is obsolete"}, time.Now())

		return err
	})

	return accepted
}

func TestSkip(t *testing.T) {
	inBubble(t, func(b *fixture) {
		broken := alwaysFailing("Broken")
		b.start(b.engine(b.store, stage("first", succeeding("A"), broken, succeeding("B")), stage("second", succeeding("C"))))
		b.accept("op", "instance")
		time.Sleep(10 * time.Second)

		if b.skip("op", "A") || b.skip("op", "C") || b.skip("none", "Broken") {
			b.Error("a step other than the current one was skipped")
		}

		if !b.skip("op", "Broken") {
			b.Fatal("the stuck step was not skipped")
		}

		runs := broken.runs()
		record := b.await("op")

		if record.State != process.Succeeded || broken.runs() != runs {
			b.Errorf("ended as %s, the step ran %d more times", record.State, broken.runs()-runs)
		}

		if diff := cmp.Diff([]string{"Broken"}, record.SkippedSteps); diff != "" || record.Skip != (process.Skip{}) {
			b.Errorf("pending skip request %v, skipped steps -want +got:\n%s", record.Skip, diff)
		}

		// The stage restarts from its first step, whose success is already in the timeline.
		timeline := b.history("op")
		want := []string{"skip requested", "Broken skipped", "B done", "C done", "operation succeeded"}

		if diff := cmp.Diff(want, timeline[len(timeline)-len(want):]); diff != "" {
			b.Errorf("timeline -want +got:\n%s", diff)
		}
	})
}

// TestSkipDuringAnAttempt checks that the result of a running attempt does not undo a skip request that arrived during the
// attempt.
func TestSkipDuringAnAttempt(t *testing.T) {
	inBubble(t, func(b *fixture) {
		slow := scripted("Slow", func(int) (time.Duration, error) {
			time.Sleep(10 * time.Second) // fake time

			return 0, failure.Wrap(failure.Transient, errUnavailable, "the upstream is unavailable")
		})

		b.start(b.engine(b.store, stage("only", slow)))
		b.accept("op", "instance")
		time.Sleep(5 * time.Second)

		if !b.skip("op", "Slow") {
			b.Fatal("the step is not skipped")
		}

		if record := b.await("op"); record.State != process.Succeeded || slow.runs() != 1 {
			b.Errorf("ended as %s after %d runs", record.State, slow.runs())
		}
	})
}

// TestSkipOfAStepThatSucceeds requests a skip during an attempt that succeeds. The request has no effect, even when the stage restarts
// because a later step waits.
func TestSkipOfAStepThatSucceeds(t *testing.T) {
	inBubble(t, func(b *fixture) {
		slow := scripted("Slow", func(int) (time.Duration, error) {
			time.Sleep(10 * time.Second) // fake time, during which a renewal records the step

			return 0, nil
		})
		waiting := scripted("Waiting", func(run int) (time.Duration, error) { return time.Second * time.Duration(max(0, 3-run)), nil })

		b.start(b.engine(b.store, stage("only", slow, succeeding("Quick"), waiting)))
		b.accept("op", "instance")
		time.Sleep(5 * time.Second)

		if !b.skip("op", "Slow") {
			b.Fatal("the step is not skipped")
		}

		record := b.await("op")
		if len(record.SkippedSteps) != 0 || record.Skip != (process.Skip{}) || slow.runs() != waiting.runs() {
			b.Errorf("pending skip request %v, skipped steps %v, runs of the steps %d and %d", record.Skip, record.SkippedSteps, slow.runs(), waiting.runs())
		}
	})
}

// TestSecondSkip checks that a skip request is not lost if it arrives after the run has skipped another step, but before the run
// has stored that skip.
func TestSecondSkip(t *testing.T) {
	inBubble(t, func(b *fixture) {
		slow := scripted("Slow", func(int) (time.Duration, error) {
			time.Sleep(10 * time.Second) // fake time, during which a renewal records the step

			return 0, failure.Wrap(failure.Transient, errUnavailable, "the upstream is unavailable")
		})

		b.start(b.engine(b.store, stage("only", alwaysFailing("Broken"), slow)))
		b.accept("op", "instance")
		time.Sleep(5 * time.Second)

		if !b.skip("op", "Broken") {
			b.Fatal("the first step is not skipped")
		}

		time.Sleep(5 * time.Second)

		if !b.skip("op", "Slow") {
			b.Fatal("the second step is not skipped")
		}

		record := b.await("op")
		if diff := cmp.Diff([]string{"Broken", "Slow"}, record.SkippedSteps); diff != "" || slow.runs() != 1 {
			b.Errorf("ended as %s, the second step ran %d times; skipped -want +got:\n%s", record.State, slow.runs(), diff)
		}
	})
}

// TestSkipWhilePending checks that a step can be skipped while the operation is pending. Operators do this for a retry that must
// not run the step.
func TestSkipWhilePending(t *testing.T) {
	inBubble(t, func(b *fixture) {
		broken := scripted("Broken", func(int) (time.Duration, error) { return 0, failure.New(failure.Permanent, "broken") })

		b.accept("op", "instance")

		if !b.skip("op", "Broken") {
			b.Fatal("the step is not skipped")
		}

		b.start(b.engine(b.store, stage("first", succeeding("A")), stage("second", broken)))

		if record := b.await("op"); record.State != process.Succeeded || broken.runs() != 0 {
			b.Errorf("ended as %s after %d runs of the step", record.State, broken.runs())
		}
	})
}

func TestRetryIsANewOperation(t *testing.T) {
	inBubble(t, func(b *fixture) {
		broken := true
		flaky := scripted("Flaky", func(int) (time.Duration, error) {
			if broken {
				return 0, failure.New(failure.Permanent, "broken")
			}

			return 0, nil
		})
		first, order := succeeding("First"), succeeding("Order")

		check := stage("check", flaky)
		check.RetryFrom = "order"

		engine := b.engine(b.store, stage("first", first), stage("order", order), check, stage("last", succeeding("Last")))
		b.start(engine)
		b.accept("op", "instance")

		failed := b.await("op")
		if failed.State != process.Failed {
			b.Fatalf("ended as %s", failed.State)
		}

		payload, err := b.store.Payload(b.Context(), b.store.Reader(), "op")
		if err != nil {
			b.Fatal(err)
		}

		broken = false
		failed.Payload = payload
		b.acceptNew(engine.Successor(failed, "again", time.Now()))

		record := b.await("again")
		if record.State != process.Succeeded || record.PredecessorID != "op" {
			b.Errorf("ended as %s, retries %q", record.State, record.PredecessorID)
		}

		// The retry inherits the data. It starts at the stage named by RetryFrom instead of the first stage.
		if diff := cmp.Diff([]string{"First", "Order", "Order", "Last"}, b.trace(record)); diff != "" {
			b.Errorf("data -want +got:\n%s", diff)
		}

		if first.runs() != 1 || order.runs() != 2 || b.get("op").State != process.Failed {
			b.Errorf("runs %d and %d, and the failed one is %s", first.runs(), order.runs(), b.get("op").State)
		}
	})
}

func TestMaySkip(t *testing.T) {
	inBubble(t, func(b *fixture) {
		engine := b.engine(b.store, stage("first", succeeding("A")),
			process.Stage[data]{Name: "second", Retry: process.DefaultRetry(), Steps: process.Skippable[data](succeeding("B"))})

		for step, want := range map[string]bool{"A": false, "B": true, "C": false} {
			if got := engine.MaySkip("test", step); got != want {
				b.Errorf("step %s: skippable is %t", step, got)
			}
		}

		if engine.MaySkip("other", "A") {
			b.Error("a step of an unknown kind is skippable")
		}
	})
}
