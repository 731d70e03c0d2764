package process_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/utils/clock"

	"github.com/environment-broker/environment-broker/internal/failure"
	"github.com/environment-broker/environment-broker/internal/logging"
	"github.com/environment-broker/environment-broker/process"
)

// recorder is an Observer that records its calls.
type recorder struct {
	mutex sync.Mutex
	lines []string
}

func (d *recorder) add(line string) {
	d.mutex.Lock()
	defer d.mutex.Unlock()

	d.lines = append(d.lines, line)
}

func (d *recorder) recorded() []string {
	d.mutex.Lock()
	defer d.mutex.Unlock()

	return append([]string{}, d.lines...)
}

func (d *recorder) RunBegan(kind string) { d.add(kind + " began") }

func (d *recorder) PickedUp(kind string, delay time.Duration) {
	d.add(kind + " picked up after " + delay.Truncate(time.Second).String())
}

func (d *recorder) RunEnded(kind string) { d.add(kind + " left") }

func (d *recorder) Attempted(_, step string, outcome process.Outcome, took time.Duration) {
	d.add(step + " " + string(outcome) + " after " + took.String())
}

func (d *recorder) Ended(record process.Record) { d.add(record.Kind + " " + string(record.State)) }

func (d *recorder) ClaimFailed() { d.add("claim failed") }

func (d *recorder) LeaseLost() { d.add("lease lost") }

// faultyClaims is a store whose first claims fail. If lost is set, every Save reports a lost lease.
type faultyClaims struct {
	process.Store

	failing int
	lost    bool
}

func (s *faultyClaims) Claim(ctx context.Context, claim process.Claim) ([]process.Claimed, error) {
	if s.failing > 0 {
		s.failing--

		return nil, errors.New("the database is unavailable")
	}

	return s.Store.Claim(ctx, claim)
}

func (s *faultyClaims) Save(ctx context.Context, progress process.Progress) (process.State, error) {
	if s.lost {
		return "", process.ErrLeaseLost
	}

	return s.Store.Save(ctx, progress)
}

// observed returns an engine that reports to the recorder.
func (b *fixture) observed(store process.Store, recorder *recorder, stages ...process.Stage[data]) *process.Engine[data] {
	b.Helper()

	config := process.DefaultConfig()
	config.Observer = recorder

	engine, err := process.NewEngine(store, config, clock.RealClock{}, logging.Discard(),
		process.Process[data]{Kind: "test", Limit: limit, Stages: stages})
	if err != nil {
		b.Fatal(err)
	}

	return engine
}

func TestObserver(t *testing.T) {
	inBubble(t, func(b *fixture) {
		slow := scripted("slow", func(run int) (time.Duration, error) {
			time.Sleep(2 * time.Second) // fake time

			if run == 1 {
				return 0, failure.New(failure.Transient, "not yet")
			}

			return 0, nil
		})
		recorder := &recorder{}

		b.accept("op-1", "instance-1")
		time.Sleep(5 * time.Second) // before the engine starts

		stop := b.start(b.observed(b.store, recorder, stage("only", slow)))
		b.await("op-1")
		stop()

		want := []string{
			"test began", "test picked up after 5s", "slow retrying after 2s", "test left",
			"test began", "test picked up after 0s", "slow done after 2s", "test succeeded", "test left",
		}
		if diff := cmp.Diff(want, recorder.recorded()); diff != "" {
			b.Errorf("-want +got\n%s", diff)
		}
	})
}

// TestObserverOfOperationsThatEndWhilePending checks that the end of a pending operation, by cancellation or expiry, is observed
// once if two replicas share an observer.
func TestObserverOfOperationsThatEndWhilePending(t *testing.T) {
	inBubble(t, func(b *fixture) {
		tracer := &tracer{}
		config := process.DefaultConfig()
		config.Workers, config.PendingLimit, config.Observer, config.Tracer = 0, 10*time.Minute, &tracer.recorder, tracer

		for range 2 {
			engine, err := process.NewEngine(b.store, config, clock.RealClock{}, logging.Discard(),
				process.Process[data]{Kind: "test", Limit: limit, Stages: []process.Stage[data]{stage("only", succeeding("a"))}})
			if err != nil {
				b.Fatal(err)
			}

			b.store.OnEnded(engine.Ended)
			b.start(engine)
		}

		b.acceptNew(process.New{ID: "canceled", Kind: "test", InstanceID: "instance-1", Trace: "trace-1"})
		b.acceptNew(process.New{ID: "late", Kind: "test", InstanceID: "instance-2", Trace: "trace-2"})
		b.cancel("instance-1")
		b.await("late")
		synctest.Wait()

		want := []string{"test canceled", "canceled of trace-1 canceled", "test failed", "late of trace-2 failed"}
		if diff := cmp.Diff(want, tracer.recorded()); diff != "" {
			b.Errorf("-want +got\n%s", diff)
		}
	})
}

func TestObserverOfFailedClaimsAndLostLeases(t *testing.T) {
	inBubble(t, func(b *fixture) {
		recorder := &recorder{}

		b.accept("op-1", "instance-1")

		stop := b.start(b.observed(&faultyClaims{Store: b.store, failing: 1, lost: true}, recorder, stage("only", succeeding("a"))))

		time.Sleep(2500 * time.Millisecond) // fake time, less than a lease
		stop()

		want := []string{"claim failed", "test began", "test picked up after 0s", "a done after 0s", "lease lost", "test left"}
		if diff := cmp.Diff(want, recorder.recorded()); diff != "" {
			b.Errorf("-want +got\n%s", diff)
		}
	})
}
