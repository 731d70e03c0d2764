package process_test

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/environment-broker/environment-broker/internal/failure"
	"github.com/environment-broker/environment-broker/process"
	"github.com/environment-broker/environment-broker/storage"
)

// TestReplicaThatTakesOverFromItself checks that a replica that loses its lease and claims the operation again stops the first
// run. Renewals fail while claims succeed.
func TestReplicaThatTakesOverFromItself(t *testing.T) {
	inBubble(t, func(b *fixture) {
		store := &disconnectableStore{Store: b.store, failRenewals: true}

		var now, most atomic.Int32

		long := &step{name: "Long"}
		long.work = func(ctx context.Context, o operation) (operation, time.Duration, error) {
			most.Store(max(most.Load(), now.Add(1)))
			defer now.Add(-1)

			if long.runs() > 1 {
				store.mutex.Lock()
				store.failRenewals = false
				store.mutex.Unlock()
			}

			select {
			case <-time.After(30 * time.Second):
				return o, 0, nil
			case <-ctx.Done():
				return o, 0, ctx.Err()
			}
		}

		b.start(b.engine(store, stage("only", long)))
		b.accept("op", "instance")

		if record := b.await("op"); record.State != process.Succeeded || most.Load() != 1 || long.runs() > 3 {
			b.Errorf("ended as %s after %d runs, %d at the same time", record.State, long.runs(), most.Load())
		}
	})
}

func TestPanicKeepsTheIntent(t *testing.T) {
	inBubble(t, func(b *fixture) {
		b.start(b.engine(b.store, stage("only", &step{name: "Order", work: func(ctx context.Context, o operation) (operation, time.Duration, error) {
			o.Data.Trace = append(o.Data.Trace, "intent")

			if err := o.Save(ctx); err != nil {
				return o, 0, err
			}

			panic("the response is invalid")
		}})))
		b.accept("op", "instance")

		record := b.await("op")
		if diff := cmp.Diff([]string{"intent"}, b.trace(record)); record.State != process.Failed || diff != "" {
			b.Errorf("ended as %s, stored data -want +got:\n%s", record.State, diff)
		}
	})
}

// lostResponse is a store whose first successful Save returns an error, as if the response had been lost.
type lostResponse struct {
	process.Store

	saved atomic.Int64
}

func (s *lostResponse) Save(ctx context.Context, progress process.Progress) (process.State, error) {
	state, err := s.Store.Save(ctx, progress)
	if err == nil && s.saved.Add(1) == 1 {
		return "", errDisconnected
	}

	return state, err
}

// TestUncertainWriteIsNotRepeated checks that a run writes nothing more after the response to a write was lost, because a second
// write could repeat timeline entries.
func TestUncertainWriteIsNotRepeated(t *testing.T) {
	inBubble(t, func(b *fixture) {
		order := &step{name: "Order", work: func(ctx context.Context, o operation) (operation, time.Duration, error) {
			if err := o.Save(ctx); err != nil {
				return o, 0, failure.Wrap(failure.Transient, err, "the intent could not be stored")
			}

			return o, 0, nil
		}}

		b.start(b.engine(&lostResponse{Store: b.store}, stage("only", succeeding("A"), order)))
		b.accept("op", "instance")
		b.await("op")

		want := []string{"accepted", "A done", "taken over", "A done", "Order done", "operation succeeded"}
		if diff := cmp.Diff(want, b.history("op")); diff != "" {
			b.Errorf("timeline -want +got:\n%s", diff)
		}
	})
}

// TestPollingUsesNoRetryWindow checks that polls reset the retry window: between two retryable errors, the step polls for longer
// than the window.
func TestPollingUsesNoRetryWindow(t *testing.T) {
	inBubble(t, func(b *fixture) {
		poll := scripted("Poll", func(run int) (time.Duration, error) {
			switch {
			case run == 1 || run == 6:
				return 0, failure.New(failure.Transient, "the connection broke")
			case run < 6:
				return 30 * time.Second, nil
			default:
				return 0, nil
			}
		})

		b.start(b.engine(b.store, stage("only", poll))) // with a retry window of a minute
		b.accept("op", "instance")

		if record := b.await("op"); record.State != process.Succeeded {
			b.Errorf("ended as %s, %+v", record.State, record.Problem)
		}
	})
}

func TestStepThatGaveUpDoesNotRunAgain(t *testing.T) {
	inBubble(t, func(b *fixture) {
		optional := &step{name: "Optional", work: func(_ context.Context, o operation) (operation, time.Duration, error) {
			return process.RetryOperationWithoutFail(o, "tagging", failure.New(failure.Transient, "503"), time.Second, 5*time.Second)
		}}
		poll := scripted("Poll", func(run int) (time.Duration, error) {
			if run < 4 {
				return time.Second, nil
			}

			return 0, nil
		})

		b.start(b.engine(b.store, stage("only", optional, poll)))
		b.accept("op", "instance")

		if diff := cmp.Diff([]string{"Optional"}, b.await("op").SkippedSteps); diff != "" {
			b.Errorf("skipped steps -want +got:\n%s", diff)
		}
	})
}

// TestUnreadablePayloadFailsOnlyItsOperation checks that other operations continue, and that the unreadable payload stays
// stored.
func TestUnreadablePayloadFailsOnlyItsOperation(t *testing.T) {
	inBubble(t, func(b *fixture) {
		b.accept("broken", "one")
		b.accept("sound", "two")

		err := b.db.InTx(b.Context(), func(tx storage.Tx) error {
			_, err := storage.Exec(b.Context(), tx, `UPDATE operations SET payload = 'gone:key' WHERE id = 'broken'`)

			return err
		})
		if err != nil {
			b.Fatal(err)
		}

		b.start(b.engine(b.store, stage("only", succeeding("A"))))

		if record := b.await("sound"); record.State != process.Succeeded {
			b.Errorf("the other operation ended as %s", record.State)
		}

		if record := b.await("broken"); record.State != process.Failed {
			b.Errorf("the broken operation ended as %s", record.State)
		}

		stored, err := storage.Get[string](b.Context(), b.db.Reader(), `SELECT payload FROM operations WHERE id = 'broken'`)
		if err != nil || stored != "gone:key" {
			b.Errorf("its payload is %q now, %v", stored, err)
		}
	})
}

func TestTextsAreStoredPresentably(t *testing.T) {
	inBubble(t, func(b *fixture) {
		invalid := "a\x00b\x1b[31m " + strings.Repeat("ü", 3000)
		b.start(b.engine(b.store, stage("only", scripted("Invalid", func(int) (time.Duration, error) {
			return 0, failure.New(failure.Permanent, "%s", invalid)
		}))))
		b.accept("op", "instance")

		message := b.await("op").Problem.Message
		if !strings.HasPrefix(message, "a b [31m ü") || len([]rune(message)) > 2001 {
			b.Errorf("stored %d characters: %.20q", len([]rune(message)), message)
		}
	})
}
