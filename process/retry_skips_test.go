package process_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/utils/clock"

	"github.com/environment-broker/environment-broker/internal/failure"
	"github.com/environment-broker/environment-broker/process"
)

// TestRetryKeepsSkips retries a failed operation in which an operator has skipped a stuck step. The retry skips the step, too.
func TestRetryKeepsSkips(t *testing.T) {
	inBubble(t, func(b *fixture) {
		stuck, broken := alwaysFailing("Stuck"), scripted("Broken", func(run int) (time.Duration, error) {
			if run == 1 {
				return 0, failure.New(failure.Permanent, "broken")
			}

			return 0, nil
		})

		engine := b.engine(b.store,
			process.Stage[data]{Name: "first", Retry: process.DefaultRetry(), Steps: process.Skippable[data](stuck, broken)})
		b.start(engine)
		b.accept("op", "instance")
		time.Sleep(10 * time.Second)

		if !b.skip("op", "Stuck") {
			b.Fatal("the stuck step is not skipped")
		}

		failed, runs := b.await("op"), stuck.runs()
		if failed.State != process.Failed {
			b.Fatalf("ended as %s", failed.State)
		}

		failed.Payload = json.RawMessage(`{}`)
		b.acceptNew(engine.Successor(failed, "again", time.Now()))

		record := b.await("again")
		if diff := cmp.Diff([]string{"Stuck"}, record.SkippedSteps); diff != "" || record.State != process.Succeeded || stuck.runs() != runs {
			b.Errorf("ended as %s, the step ran %d more times; skipped -want +got:\n%s", record.State, stuck.runs()-runs, diff)
		}
	})
}

// TestSuccessIsDescribed skips the step that describes the result. Users must not see the description of an earlier step.
func TestSuccessIsDescribed(t *testing.T) {
	cases := map[string]struct {
		reason    string
		succeeded string
		want      string
	}{
		"process": {"the process describes the result", "It is ready", "It is ready"},
		"step":    {"the last step describes the result", "", "Operation created"},
	}

	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			inBubbleOnSQLite(t, func(b *fixture) { // the database does not matter
				engine, err := process.NewEngine(b.store, process.DefaultConfig(), clock.RealClock{}, b.log, process.Process[data]{
					Kind: "test", Limit: limit, Succeeded: c.succeeded,
					Stages: []process.Stage[data]{stage("only", succeeding("A"))},
				})
				if err != nil {
					b.Fatal(err)
				}

				b.start(engine)
				b.acceptNew(engine.Successor(process.Record{Kind: "test", InstanceID: "instance", Payload: json.RawMessage(`{}`)}, "op", time.Now()))

				if record := b.await("op"); record.State != process.Succeeded || record.Description != c.want {
					b.Errorf("%s: %s, %q", c.reason, record.State, record.Description)
				}
			})
		})
	}
}

// TestLateSkipAppliesToTheRetry requests the skip during the attempt that fails the operation. The retry skips the step.
func TestLateSkipAppliesToTheRetry(t *testing.T) {
	inBubble(t, func(b *fixture) {
		fatal := scripted("Fatal", func(int) (time.Duration, error) {
			time.Sleep(10 * time.Second) // fake time

			return 0, failure.New(failure.Permanent, "broken")
		})

		engine := b.engine(b.store, process.Stage[data]{Name: "only", Retry: process.DefaultRetry(), Steps: process.Skippable[data](fatal)})
		b.start(engine)
		b.accept("op", "instance")
		time.Sleep(5 * time.Second)

		if !b.skip("op", "Fatal") {
			b.Fatal("the step is not skipped")
		}

		failed := b.await("op")
		failed.Payload = json.RawMessage(`{}`)
		b.acceptNew(engine.Successor(failed, "again", time.Now()))

		if record := b.await("again"); failed.State != process.Failed || record.State != process.Succeeded || fatal.runs() != 1 {
			b.Errorf("ended as %s, then as %s after %d runs", failed.State, record.State, fatal.runs())
		}
	})
}

func TestSkipsOfARetry(t *testing.T) {
	cases := map[string]struct {
		reason string
		former process.Record
		want   []string
	}{
		"nothing":       {"all steps were done", process.Record{FinishedStages: []string{"first"}}, nil},
		"an operator's": {"without the skip, the stage would be stuck again", process.Record{SkippedSteps: []string{"A", "C"}}, []string{"A", "C"}},
		"requested":     {"the operation ended before the skip was applied", process.Record{Skip: process.Skip{Step: "A"}}, []string{"A"}},
		"the step was done despite the skip": {
			"the skipped step was done before", process.Record{FinishedStages: []string{"first"}, Skip: process.Skip{Step: "A"}}, nil,
		},
		"not completed":         {"a step that timed out may succeed now", process.Record{SkippedSteps: []string{"B"}}, nil},
		"of a reused stage":     {"the step stays skipped", process.Record{FinishedStages: []string{"first"}, SkippedSteps: []string{"B"}}, []string{"B"}},
		"before RetryFrom":      {"the previous stage runs again, too", process.Record{FinishedStages: []string{"first", "second"}, SkippedSteps: []string{"C"}}, []string{"C"}},
		"of an earlier release": {"the process has no such step", process.Record{SkippedSteps: []string{"Z"}}, nil},
	}

	inBubble(t, func(b *fixture) {
		first, second := stage("first", succeeding("A"), succeeding("B")), stage("second", succeeding("C"))
		first.Steps[0].Skippable, second.Steps[0].Skippable = true, true
		third := stage("third", succeeding("D"))
		third.RetryFrom = "second"
		engine := b.engine(b.store, first, second, third)

		for name, c := range cases {
			c.former.Kind = "test"

			if diff := cmp.Diff(c.want, engine.Successor(c.former, "again", time.Now()).SkippedSteps); diff != "" {
				b.Errorf("%s: %s: -want +got\n%s", name, c.reason, diff)
			}
		}
	})
}
