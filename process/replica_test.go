package process_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/utils/clock"

	"github.com/environment-broker/environment-broker/internal/failure"
	"github.com/environment-broker/environment-broker/internal/logging"
	"github.com/environment-broker/environment-broker/process"
)

// disconnectableStore is a store whose calls fail while it is disconnected, as after a kill or in a database outage.
type disconnectableStore struct {
	process.Store

	mutex        sync.Mutex
	disconnected bool
	// failRenewals makes renewals fail while other calls succeed.
	failRenewals bool
}

var errDisconnected = errors.New("the database is unavailable")

func (c *disconnectableStore) disconnect(disconnected bool) {
	c.mutex.Lock()
	defer c.mutex.Unlock()

	c.disconnected = disconnected
}

func (c *disconnectableStore) err() error {
	c.mutex.Lock()
	defer c.mutex.Unlock()

	if c.disconnected {
		return errDisconnected
	}

	return nil
}

func (c *disconnectableStore) Due(ctx context.Context, kinds []string, now time.Time) ([]process.Due, error) {
	if err := c.err(); err != nil {
		return nil, err
	}

	return c.Store.Due(ctx, kinds, now)
}

func (c *disconnectableStore) Claim(ctx context.Context, claim process.Claim) ([]process.Claimed, error) {
	if err := c.err(); err != nil {
		return nil, err
	}

	return c.Store.Claim(ctx, claim)
}

func (c *disconnectableStore) Renew(ctx context.Context, renewal process.Renewal) (map[string]process.State, error) {
	c.mutex.Lock()
	failRenewals := c.failRenewals
	c.mutex.Unlock()

	if err := c.err(); err != nil || failRenewals {
		return nil, errors.Join(err, errDisconnected)
	}

	return c.Store.Renew(ctx, renewal)
}

func (c *disconnectableStore) Save(ctx context.Context, progress process.Progress) (process.State, error) {
	if err := c.err(); err != nil {
		return "", err
	}

	return c.Store.Save(ctx, progress)
}

func TestAnotherReplicaContinuesAfterACrash(t *testing.T) {
	inBubble(t, func(b *fixture) {
		first := &disconnectableStore{Store: b.store}
		finished := succeeding("Finished")
		crash := &step{name: "Crash"}
		crash.work = func(_ context.Context, o operation) (operation, time.Duration, error) {
			first.disconnect(true) // no later write of the first replica is stored

			o.Data.Trace = append(o.Data.Trace, "Crash")

			return o, 0, nil
		}
		stages := []process.Stage[data]{stage("first", finished), stage("second", crash)}

		engine := b.engine(first, stages...)
		b.start(engine)
		b.accept("op", "instance")
		engine.Wake()
		time.Sleep(500 * time.Millisecond)

		crashed := time.Now()

		b.start(b.engine(b.store, stages...))

		record := b.await("op")
		if took := time.Since(crashed); took > 10*time.Second {
			b.Errorf("replaced after %s, want within 10s", took)
		}

		if finished.runs() != 1 || crash.runs() != 2 {
			b.Errorf("runs: finished stage %d (want 1), crashed stage %d (want 2)", finished.runs(), crash.runs())
		}

		if diff := cmp.Diff([]string{"Finished", "Crash"}, b.trace(record)); diff != "" {
			b.Errorf("data -want +got:\n%s", diff)
		}

		want := []string{"accepted", "Finished done", "taken over", "Crash done", "operation succeeded"}
		if diff := cmp.Diff(want, b.history("op")); diff != "" {
			b.Errorf("timeline -want +got:\n%s", diff)
		}
	})
}

// TestOperatorsFindTheReplica checks that the holder of a lease has the name of its host, and that the timeline names the replica that
// was lost.
func TestOperatorsFindTheReplica(t *testing.T) {
	inBubble(t, func(b *fixture) {
		first := &disconnectableStore{Store: b.store}
		held := ""
		crash := &step{name: "Crash", work: func(_ context.Context, o operation) (operation, time.Duration, error) {
			held = o.Lease.Owner

			first.disconnect(true)

			return o, 0, nil
		}}

		config := process.DefaultConfig()
		config.Host = "broker-5d9c-x7k2p"

		engine := b.engineWith(config, first, stage("only", crash))
		b.start(engine)
		b.accept("op", "instance")
		engine.Wake()
		time.Sleep(500 * time.Millisecond)

		lost := held

		b.start(b.engineWith(config, b.store, stage("only", crash)))
		b.await("op")

		if !strings.HasPrefix(lost, config.Host+"/") || !strings.HasPrefix(held, config.Host+"/") || lost == held {
			b.Errorf("the replicas are %q and %q, want two names of the host %s", lost, held, config.Host)
		}

		if event := b.timeline("op")[1]; event.Outcome != process.TakenOver || !strings.Contains(event.Message, lost) {
			b.Errorf("the timeline has %+v, want the replica %s", event, lost)
		}
	})
}

func TestReplicaThatCannotRenewStopsItsSteps(t *testing.T) {
	inBubble(t, func(b *fixture) {
		store := &disconnectableStore{Store: b.store}
		stopped := make(chan error, 1)
		hang := &step{name: "Hang", work: func(ctx context.Context, o operation) (operation, time.Duration, error) {
			store.disconnect(true)
			<-ctx.Done()
			stopped <- ctx.Err()

			return o, 0, ctx.Err()
		}}

		b.start(b.engine(store, stage("only", hang)))
		b.accept("op", "instance")

		began := time.Now()

		<-stopped

		if took := time.Since(began); took > 10*time.Second {
			b.Errorf("the step was stopped after %s, want soon after the lease of 6s", took)
		}

		store.disconnect(false)
	})
}

// TestReplicaThatLostALeaseStopsItsStep checks that a replica stops its step soon after another replica has claimed the
// operation, as happens after a freeze.
func TestReplicaThatLostALeaseStopsItsStep(t *testing.T) {
	cases := map[string]struct {
		reason   string
		err      error
		givesUp  bool
		wantRuns int
	}{
		"kept":        {"the next renewal reports the lost lease", context.Canceled, false, 1},
		"done":        {"a finished step is not followed by another one", nil, false, 1},
		"handed back": {"when the same replica claims the operation again, the previous run stops before a renewal reports the lost lease", context.Canceled, true, 2},
	}

	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(b *fixture) {
				stopped := make(chan time.Time, 2)
				hang := &step{name: "Hang", work: func(ctx context.Context, o operation) (operation, time.Duration, error) {
					<-ctx.Done()
					stopped <- time.Now()

					return o, 0, c.err
				}}
				never := succeeding("Never")

				b.start(b.engine(b.store, stage("only", hang, never)))
				b.accept("op", "instance")
				time.Sleep(2500 * time.Millisecond)

				lost := time.Now()

				claimed, err := b.store.Claim(b.Context(), process.Claim{
					Due: process.Due{Kind: "test"}, Owner: "another", Limit: 1, Now: lost.Add(time.Minute), Until: lost.Add(time.Hour),
				})
				if err != nil || len(claimed) != 1 {
					b.Fatalf("claimed %d, %v", len(claimed), err)
				}

				if c.givesUp {
					record := claimed[0].Record
					record.NextRun = lost

					if _, err := b.store.Save(b.Context(), process.Progress{Record: record, Release: true, Now: lost}); err != nil {
						b.Fatal(err)
					}
				}

				if took := (<-stopped).Sub(lost); took > 2*time.Second {
					b.Errorf("%s: the step stopped after %s", c.reason, took)
				}

				time.Sleep(time.Second)

				if record := b.get("op"); hang.runs() != c.wantRuns || never.runs() != 0 || (record.Lease.Owner == "another") == c.givesUp {
					b.Errorf("%s: the step ran %d times, and the lease belongs to %q", c.reason, hang.runs(), record.Lease.Owner)
				}
			})
		})
	}
}

// lateResponse is a store whose first renewal returns late, when the run has already returned the lease.
type lateResponse struct {
	process.Store

	renewals atomic.Int64
}

func (s *lateResponse) Renew(ctx context.Context, renewal process.Renewal) (map[string]process.State, error) {
	if s.renewals.Add(1) > 1 {
		return s.Store.Renew(ctx, renewal)
	}

	time.Sleep(1500 * time.Millisecond)

	return map[string]process.State{}, nil
}

// TestLateRenewalDoesNotAffectALaterRun checks that the response to a renewal of an earlier run's lease does not interrupt the
// current run.
func TestLateRenewalDoesNotAffectALaterRun(t *testing.T) {
	inBubble(t, func(b *fixture) {
		poll := &step{name: "Poll"}
		poll.work = func(ctx context.Context, o operation) (operation, time.Duration, error) {
			if poll.runs() == 1 {
				time.Sleep(2100 * time.Millisecond) // beyond the first renewal

				return o, time.Millisecond, nil
			}

			select {
			case <-time.After(5 * time.Second):
				return o, 0, nil
			case <-ctx.Done():
				return o, 0, ctx.Err()
			}
		}

		engine := b.engine(&lateResponse{Store: b.store}, stage("only", poll))
		b.start(engine)
		b.accept("op", "instance")
		engine.Wake() // the step starts now, and again at the third poll, before the renewal returns
		b.await("op")

		want := []string{"accepted", "Poll waiting", "Poll done", "operation succeeded"}
		if diff := cmp.Diff(want, b.history("op")); diff != "" {
			b.Errorf("timeline -want +got:\n%s", diff)
		}
	})
}

func TestRunningStepIsNotStartedTwice(t *testing.T) {
	inBubble(t, func(b *fixture) {
		long := &step{name: "Long", work: func(_ context.Context, o operation) (operation, time.Duration, error) {
			time.Sleep(30 * time.Second) // longer than several leases

			return o, 0, nil
		}}

		b.start(b.engine(b.store, stage("only", long)))
		b.start(b.engine(b.store, stage("only", long)))
		b.accept("op", "instance")

		time.Sleep(10 * time.Second)

		if record := b.get("op"); record.Step != "Long" || record.StepBegan.IsZero() {
			b.Errorf("the record does not show the running step: %+v", record)
		}

		if record := b.await("op"); record.State != process.Succeeded || long.runs() != 1 {
			b.Errorf("ended as %s after %d runs", record.State, long.runs())
		}
	})
}

func TestStepIsInterruptedAtTheLimit(t *testing.T) {
	inBubble(t, func(b *fixture) {
		hang := &step{name: "Hang", work: func(ctx context.Context, o operation) (operation, time.Duration, error) {
			<-ctx.Done()

			return o, 0, ctx.Err()
		}}

		b.start(b.engine(b.store, stage("only", hang)))
		b.accept("op", "instance")
		time.Sleep(limit + time.Minute)

		record := b.get("op")
		if took := record.FinishedAt.Sub(record.StartedAt); record.Problem.Reason != failure.ReasonTimeout || took > limit+10*time.Second {
			b.Errorf("%s after %s, %+v; the limit is %s", record.State, took, record.Problem, limit)
		}

		want := []string{"accepted", "Hang handed back", "operation failed"}
		if diff := cmp.Diff(want, b.history("op")); diff != "" || hang.runs() != 1 {
			b.Errorf("it ran %d times; timeline -want +got:\n%s", hang.runs(), diff)
		}
	})
}

// TestWriteKeepsTheRenewedLease checks that a write long after the claim does not shorten the renewed lease.
func TestWriteKeepsTheRenewedLease(t *testing.T) {
	long := func(name string, save bool) *step {
		return &step{name: name, work: func(ctx context.Context, o operation) (operation, time.Duration, error) {
			time.Sleep(8500 * time.Millisecond) // longer than a lease

			if save {
				return o, 0, o.Save(ctx)
			}

			return o, 0, nil
		}}
	}

	for name, save := range map[string]bool{"the end of a stage": false, "an intent": true} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(b *fixture) {
				first, second, third := long("First", save), long("Second", save), long("Third", save)
				stages := []process.Stage[data]{stage("one", first), stage("two", second, third)}

				b.start(b.engine(b.store, stages...))
				b.start(b.engine(b.store, stages...))
				b.accept("op", "instance")
				b.await("op")

				want := []string{"accepted", "First done", "Second done", "Third done", "operation succeeded"}
				if diff := cmp.Diff(want, b.history("op")); diff != "" || first.runs()+second.runs()+third.runs() != 3 {
					b.Errorf("ran %d, %d and %d times; timeline -want +got:\n%s", first.runs(), second.runs(), third.runs(), diff)
				}
			})
		})
	}
}

func TestOperationsOfOneInstanceRunInOrder(t *testing.T) {
	inBubble(t, func(b *fixture) {
		var (
			mutex sync.Mutex
			order []string
		)

		note := &step{name: "Note", work: func(_ context.Context, o operation) (operation, time.Duration, error) {
			mutex.Lock()
			defer mutex.Unlock()

			order = append(order, o.ID)

			return o, 0, nil
		}}

		b.accept("one", "instance")
		b.accept("two", "instance")
		b.accept("three", "instance")
		b.start(b.engine(b.store, stage("only", note)))
		b.start(b.engine(b.store, stage("only", note)))
		b.await("three")

		if diff := cmp.Diff([]string{"one", "two", "three"}, order); diff != "" {
			b.Errorf("order -want +got:\n%s", diff)
		}
	})
}

func TestCancelStopsAtTheNextSafePoint(t *testing.T) {
	inBubble(t, func(b *fixture) {
		never := succeeding("Never")
		running := &step{name: "Running", work: func(_ context.Context, o operation) (operation, time.Duration, error) {
			b.cancel(o.InstanceID)
			time.Sleep(5 * time.Second) // time for the step to finish

			o.Data.Trace = append(o.Data.Trace, "Running")

			return o, 0, nil
		}}

		b.start(b.engine(b.store, stage("only", running, never)))
		b.accept("op", "instance")

		record := b.await("op")
		if record.State != process.Canceled || never.runs() != 0 {
			b.Errorf("ended as %s, the next step ran %d times", record.State, never.runs())
		}

		if diff := cmp.Diff([]string{"Running"}, b.trace(record)); diff != "" {
			b.Errorf("the data must stay stored for the cleanup: -want +got:\n%s", diff)
		}
	})
}

// TestCancelIsSeenByTheNextWrite checks that the write at the end of a stage reports a cancellation. No renewal runs between the
// cancellation and the write.
func TestCancelIsSeenByTheNextWrite(t *testing.T) {
	inBubble(t, func(b *fixture) {
		never := succeeding("Never")
		last := &step{name: "Last", work: func(_ context.Context, o operation) (operation, time.Duration, error) {
			b.cancel(o.InstanceID)

			return o, 0, nil
		}}

		b.start(b.engine(b.store, stage("first", last), stage("second", never)))
		b.accept("op", "instance")

		if record := b.await("op"); record.State != process.Canceled || never.runs() != 0 {
			b.Errorf("ended as %s, the next stage ran %d times", record.State, never.runs())
		}
	})
}

func TestCancelWakesAWaitingOperation(t *testing.T) {
	inBubble(t, func(b *fixture) {
		b.start(b.engine(b.store, stage("only", scripted("Poll", func(int) (time.Duration, error) { return 5 * time.Minute, nil }))))
		b.accept("op", "instance")
		time.Sleep(2 * time.Second)
		b.cancel("instance")

		canceled := time.Now()

		if record := b.await("op"); record.State != process.Canceled || time.Since(canceled) > 3*time.Second {
			b.Errorf("ended as %s after %s", record.State, time.Since(canceled))
		}
	})
}

func TestWaitingFreesTheWorker(t *testing.T) {
	inBubble(t, func(b *fixture) {
		config := process.DefaultConfig()
		config.Workers = 1

		wait := scripted("Wait", func(run int) (time.Duration, error) {
			if run <= 5 {
				return time.Minute, nil
			}

			return 0, nil
		})

		engine, err := process.NewEngine(b.store, config, clock.RealClock{}, logging.Discard(),
			process.Process[data]{Kind: "test", Limit: limit, Stages: []process.Stage[data]{stage("only", wait)}})
		if err != nil {
			b.Fatal(err)
		}

		names := []string{"1", "2", "3", "4", "5"}
		for _, name := range names {
			b.accept(name, name)
		}

		b.start(engine)

		began := time.Now()

		for _, name := range names {
			b.await(name)
		}

		if took := time.Since(began); took > 70*time.Second {
			b.Errorf("five operations that wait a minute each took %s with one worker", took)
		}
	})
}

func TestIntentIsStoredBeforeTheCall(t *testing.T) {
	inBubble(t, func(b *fixture) {
		lost := &disconnectableStore{Store: b.store}
		calls := []string{}
		order := &step{name: "Order", work: func(ctx context.Context, o operation) (operation, time.Duration, error) {
			if !slices.Contains(o.Data.Trace, "intent") {
				o.Data.Trace = append(o.Data.Trace, "intent")

				if err := o.Save(ctx); err != nil {
					return o, 0, failure.Wrap(failure.Transient, err, "the intent could not be stored")
				}
			}

			calls = append(calls, "call")
			if len(calls) == 1 {
				lost.disconnect(true) // the response is never stored
			}

			return o, 0, nil
		}}

		engine := b.engine(lost, stage("only", order))
		stop := b.start(engine)
		b.accept("op", "instance")
		engine.Wake()
		time.Sleep(500 * time.Millisecond)
		stop()

		if diff := cmp.Diff([]string{"intent"}, b.trace(b.get("op"))); diff != "" {
			b.Fatalf("stored before the crash -want +got:\n%s", diff)
		}

		b.start(b.engine(b.store, stage("only", order)))

		if record := b.await("op"); record.State != process.Succeeded || len(calls) != 2 {
			b.Errorf("ended as %s after %d calls", record.State, len(calls))
		}
	})
}

func TestStopHandsBackOperations(t *testing.T) {
	inBubble(t, func(b *fixture) {
		begun, second := make(chan struct{}, 2), succeeding("Second")
		hang := scripted("Hang", nil)
		hang.work = func(ctx context.Context, o operation) (operation, time.Duration, error) {
			begun <- struct{}{}

			if hang.runs() > 1 {
				return o, 0, nil
			}

			<-ctx.Done()

			return o, 0, ctx.Err()
		}

		stop := b.start(b.engine(b.store, stage("only", hang, second)))
		b.accept("op", "instance")
		<-begun

		stopping := time.Now()

		stop()

		if took := time.Since(stopping); took > 20*time.Second {
			b.Errorf("stopping took %s, want the grace period of 15s", took)
		}

		if record := b.get("op"); record.State != process.InProgress || record.Lease.Owner != "" {
			b.Errorf("the operation stayed %s under the lease of %q", record.State, record.Lease.Owner)
		}

		b.start(b.engine(b.store, stage("only", hang, second)))

		if record := b.await("op"); record.State != process.Succeeded {
			b.Errorf("ended as %s", record.State)
		}

		if timeline := b.history("op"); !slices.Contains(timeline, "Hang handed back") {
			b.Errorf("the timeline lacks the attempt that was handed back: %v", timeline)
		}
	})
}

func TestStopBeforeTheStart(t *testing.T) {
	inBubble(t, func(b *fixture) {
		ctx, stop := context.WithCancel(b.Context())
		stop()

		if err := b.engine(b.store, stage("only", succeeding("A"))).Run(ctx); err != nil {
			b.Error(err)
		}
	})
}

func TestUnregisteredKindIsAnErrorAtStart(t *testing.T) {
	inBubble(t, func(b *fixture) {
		b.accept("op", "instance")

		engine, err := process.NewEngine(b.store, process.DefaultConfig(), clock.RealClock{}, logging.Discard(),
			process.Process[data]{Kind: "another", Limit: limit, Stages: []process.Stage[data]{stage("only", succeeding("A"))}})
		if err != nil {
			b.Fatal(err)
		}

		if err := engine.Run(b.Context()); err == nil {
			b.Error("the engine started although operations have no process")
		}
	})
}
