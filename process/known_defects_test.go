package process_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/environment-broker/environment-broker/internal/failure"
	"github.com/environment-broker/environment-broker/process"
	"github.com/environment-broker/environment-broker/storage"
)

// TestKnownDefectsOfSimilarEngines checks the engine for known defects of similar engines. Other packages test the defects that do
// not concern the engine alone:
//
//   - duplicate orders: the scenarios of test/crash;
//   - encryption without authentication: TestOpenRejectsInvalidValues of internal/secret;
//   - metrics that scan tables, and lists with a query for each row: TestEveryStatementUsesAnIndex of storage;
//   - a server that drops its requests when it stops: TestStop of internal/httpserver.
func TestKnownDefectsOfSimilarEngines(t *testing.T) {
	cases := map[string]struct {
		defect string
		test   func(b *fixture)
	}{
		"error swallowed":       {"the save after a step hides the step's error, and the process continues", errorAfterASave},
		"limit from last write": {"the limit counts from the last write, so an operation that keeps writing never times out", limitDespiteWrites},
		"inputs lost":           {"after a concurrent write the engine reads the row again and loses data that steps have in memory", inputsSurviveConcurrentWrites},
		"two at once":           {"two pending operations of an instance run at the same time", pendingOperationsQueue},
		"half accepted":         {"rows are written one by one, and a crash leaves only some of them", acceptedAtomically},
		"lost queue":            {"accepted operations are queued in memory, and a crash loses them", acceptedWithoutAWakeUp},
		"error forgotten":       {"the last error is kept in memory, and users see a fixed text", lastErrorIsStored},
		"last save lost":        {"an operation whose last save fails is forgotten until a restart", failedLastSaveIsRetried},
		"old replica's work":    {"the operations of a crashed replica are resumed only when another one starts", abandonedWorkIsResumed},
		"sleeping workers":      {"a wait blocks a worker, so a few waits block everything", waitsFreeTheWorker},
	}

	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(b *fixture) {
				c.test(b)

				if b.Failed() {
					b.Log("the defect: " + c.defect)
				}
			})
		})
	}
}

func errorAfterASave(b *fixture) {
	never, neither := succeeding("Never"), succeeding("Neither")
	b.start(b.engine(b.store, stage("only", &step{name: "Broken", work: func(ctx context.Context, o operation) (operation, time.Duration, error) {
		if err := o.Save(ctx); err != nil {
			return o, 0, err
		}

		return o, 0, failure.New(failure.Permanent, "a permanent error")
	}}, never), stage("next", neither)))
	b.accept("op", "instance")

	if record := b.await("op"); record.State != process.Failed || record.Problem.Message != "a permanent error" || never.runs()+neither.runs() > 0 {
		b.Errorf("ended as %s, %+v; the next steps ran %d times", record.State, record.Problem, never.runs()+neither.runs())
	}
}

func limitDespiteWrites(b *fixture) {
	b.start(b.engine(b.store, stage("only", &step{name: "Busy", work: func(ctx context.Context, o operation) (operation, time.Duration, error) {
		return o, 20 * time.Second, o.Save(ctx)
	}})))
	b.accept("op", "instance")

	record := b.await("op")
	if took := record.FinishedAt.Sub(record.StartedAt); record.Problem.Reason != failure.ReasonTimeout || took > limit+time.Minute {
		b.Errorf("ended as %s after %s, %+v; the limit is %s", record.State, took, record.Problem, limit)
	}
}

func inputsSurviveConcurrentWrites(b *fixture) {
	build := &step{name: "Build", work: func(_ context.Context, o operation) (operation, time.Duration, error) {
		o.Data.Input = "secret"

		return o, 0, nil
	}}
	use := &step{name: "Use"}
	use.work = func(ctx context.Context, o operation) (operation, time.Duration, error) {
		if o.Data.Input == "" {
			return o, 0, errors.New("the input is missing")
		}

		// Change the row as another client would, and then store the data. In its first two runs, the step then restarts the
		// stage.
		if _, err := b.store.Wake(ctx, []string{"event"}, time.Now()); err != nil {
			return o, 0, err
		}

		o.WaitingFor = "event"
		if err := o.Save(ctx); err != nil || o.Data.Input == "" || use.runs() > 2 {
			return o, 0, err
		}

		return o, time.Second, nil
	}

	b.start(b.engine(b.store, stage("only", build, use)))
	b.accept("op", "instance")

	if record := b.await("op"); record.State != process.Succeeded || use.runs() != 3 {
		b.Errorf("ended as %s after %d runs, %+v", record.State, use.runs(), record.Problem)
	}
}

func pendingOperationsQueue(b *fixture) {
	var now, most atomic.Int32

	long := &step{name: "Long", work: func(_ context.Context, o operation) (operation, time.Duration, error) {
		most.Store(max(most.Load(), now.Add(1)))
		defer now.Add(-1)

		time.Sleep(5 * time.Second)

		return o, 0, nil
	}}

	b.accept("first", "instance")
	b.accept("second", "instance")
	b.start(b.engine(b.store, stage("only", long)))
	b.start(b.engine(b.store, stage("only", long)))

	first, second := b.await("first"), b.await("second")
	if most.Load() != 1 || second.StartedAt.Before(first.FinishedAt) {
		b.Errorf("%d ran at the same time; the first ended at %s, the second started at %s", most.Load(), first.FinishedAt, second.StartedAt)
	}
}

func acceptedAtomically(b *fixture) {
	crash := errors.New("a crash after the operation's row")

	err := b.db.InTx(b.Context(), func(tx storage.Tx) error {
		if err := b.store.Accept(b.Context(), tx, process.New{
			ID: "op", Kind: "test", InstanceID: "instance", Payload: []byte(`{}`), At: time.Now(),
		}); err != nil {
			return err
		}

		return crash
	})
	if !errors.Is(err, crash) {
		b.Fatal(err)
	}

	_, err = b.store.Get(b.Context(), b.db.Reader(), "op")
	if timeline := b.timeline("op"); !errors.Is(err, storage.ErrNotFound) || len(timeline) > 0 {
		b.Errorf("%d timeline entries are left, and the operation: %v", len(timeline), err)
	}
}

func acceptedWithoutAWakeUp(b *fixture) {
	b.start(b.engine(b.store, stage("only", succeeding("A"))))
	b.accept("op", "instance") // without waking the engine
	time.Sleep(2 * time.Second)

	if record := b.get("op"); record.State != process.Succeeded {
		b.Errorf("the operation is %s", record.State)
	}
}

func lastErrorIsStored(b *fixture) {
	b.start(b.engine(b.store, stage("only", scripted("Unavailable", func(int) (time.Duration, error) {
		return 0, failure.New(failure.Transient, "the Provisioner is unavailable").WithReason("err_http", "provisioner")
	}))))
	b.accept("op", "instance")
	time.Sleep(10 * time.Second)

	want := process.Problem{Message: "the Provisioner is unavailable", Reason: "err_http", Component: "provisioner"}
	if diff := cmp.Diff(want, b.get("op").Problem); diff != "" {
		b.Errorf("during the retries: -want +got:\n%s", diff)
	}

	timeline := b.timeline("op")
	if last := timeline[len(timeline)-1]; last.Message != want.Message || !last.NextRun.After(last.End) {
		b.Errorf("the timeline ends with %+v", last)
	}
}

func failedLastSaveIsRetried(b *fixture) {
	store := &disconnectableStore{Store: b.store}
	last := &step{name: "Last"}
	last.work = func(_ context.Context, o operation) (operation, time.Duration, error) {
		store.disconnect(last.runs() == 1)

		if last.runs() == 1 {
			time.AfterFunc(10*time.Second, func() { store.disconnect(false) }) // the database comes back
		}

		return o, 0, nil
	}

	b.start(b.engine(store, stage("only", last)))
	b.accept("op", "instance")

	if record := b.await("op"); record.State != process.Succeeded || time.Since(record.CreatedAt) > 20*time.Second {
		b.Errorf("ended as %s after %s", record.State, time.Since(record.CreatedAt))
	}
}

func abandonedWorkIsResumed(b *fixture) {
	old := &disconnectableStore{Store: b.store}
	stages := []process.Stage[data]{stage("only", &step{name: "Leave", work: func(_ context.Context, o operation) (operation, time.Duration, error) {
		old.disconnect(true)

		return o, 0, nil
	}})}

	b.accept("op", "instance")
	b.start(b.engine(old, stages...))
	time.Sleep(100 * time.Millisecond)

	died := time.Now()

	b.start(b.engine(b.store, stages...))

	if record := b.await("op"); record.State != process.Succeeded || time.Since(died) > 10*time.Second {
		b.Errorf("ended as %s after %s", record.State, time.Since(died))
	}
}

func waitsFreeTheWorker(b *fixture) {
	const many = 70 // more than there are workers

	wait := &step{name: "Wait", work: func(_ context.Context, o operation) (operation, time.Duration, error) {
		return o, time.Minute - o.Elapsed(), nil
	}}

	b.start(b.engine(b.store, stage("only", wait)))

	ids := make([]string, 0, many)
	for i := range many {
		id := string(rune('a'+i%26)) + time.Duration(i).String()
		ids = append(ids, id)
		b.accept(id, id)
	}

	began := time.Now()

	for _, id := range ids {
		b.await(id)
	}

	if took := time.Since(began); took > 70*time.Second {
		b.Errorf("%d waits of a minute took %s", many, took)
	}
}
