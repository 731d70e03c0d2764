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

// diary is an observer that records its calls.
type diary struct {
	mutex sync.Mutex
	lines []string
}

func (d *diary) write(line string) {
	d.mutex.Lock()
	defer d.mutex.Unlock()

	d.lines = append(d.lines, line)
}

func (d *diary) read() []string {
	d.mutex.Lock()
	defer d.mutex.Unlock()

	return append([]string{}, d.lines...)
}

func (d *diary) Began(kind string) { d.write(kind + " began") }

func (d *diary) PickedUp(kind string, delay time.Duration) {
	d.write(kind + " picked up after " + delay.Truncate(time.Second).String())
}

func (d *diary) Left(kind string) { d.write(kind + " left") }

func (d *diary) Attempted(_, step string, outcome process.Outcome, took time.Duration) {
	d.write(step + " " + string(outcome) + " after " + took.String())
}

func (d *diary) Ended(record process.Record) { d.write(record.Kind + " " + string(record.State)) }

func (d *diary) ClaimFailed() { d.write("claim failed") }

func (d *diary) LeaseLost() { d.write("lease lost") }

// faultyClaims is a store that fails the first claims, or loses every lease.
type faultyClaims struct {
	process.Store

	failing int
	lost    bool
}

func (s *faultyClaims) Claim(ctx context.Context, claim process.Claim) ([]process.Claimed, error) {
	if s.failing > 0 {
		s.failing--

		return nil, errors.New("the database is away")
	}

	return s.Store.Claim(ctx, claim)
}

func (s *faultyClaims) Save(ctx context.Context, progress process.Progress) (process.State, error) {
	if s.lost {
		return "", process.ErrLeaseLost
	}

	return s.Store.Save(ctx, progress)
}

// observed returns an engine with a diary.
func (b *bench) observed(store process.Store, diary *diary, stages ...process.Stage[data]) *process.Engine[data] {
	b.Helper()

	config := process.DefaultConfig()
	config.Observer = diary

	engine, err := process.NewEngine(store, config, clock.RealClock{}, logging.Discard(),
		process.Process[data]{Kind: "test", Limit: limit, Stages: stages})
	if err != nil {
		b.Fatal(err)
	}

	return engine
}

func TestObserver(t *testing.T) {
	inBubble(t, func(b *bench) {
		slow := failing("slow", func(run int) (time.Duration, error) {
			time.Sleep(2 * time.Second) // fake time

			if run == 1 {
				return 0, failure.New(failure.Transient, "not yet")
			}

			return 0, nil
		})
		diary := &diary{}

		b.accept("op-1", "instance-1")
		time.Sleep(5 * time.Second) // before the engine starts

		stop := b.start(b.observed(b.store, diary, stage("only", slow)))
		b.await("op-1")
		stop()

		want := []string{
			"test began", "test picked up after 5s", "slow retrying after 2s", "test left",
			"test began", "test picked up after 0s", "slow done after 2s", "test succeeded", "test left",
		}
		if diff := cmp.Diff(want, diary.read()); diff != "" {
			b.Errorf("-want +got\n%s", diff)
		}
	})
}

// TestObserverOfOperationsThatEndWhilePending has two replicas without workers, and one observer for both.
func TestObserverOfOperationsThatEndWhilePending(t *testing.T) {
	inBubble(t, func(b *bench) {
		told := &tracer{}
		config := process.DefaultConfig()
		config.Workers, config.PendingLimit, config.Observer, config.Tracer = 0, 10*time.Minute, &told.diary, told

		for range 2 {
			engine, err := process.NewEngine(b.store, config, clock.RealClock{}, logging.Discard(),
				process.Process[data]{Kind: "test", Limit: limit, Stages: []process.Stage[data]{stage("only", traced("a"))}})
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
		if diff := cmp.Diff(want, told.read()); diff != "" {
			b.Errorf("-want +got\n%s", diff)
		}
	})
}

func TestObserverOfFailedClaimsAndLostLeases(t *testing.T) {
	inBubble(t, func(b *bench) {
		diary := &diary{}

		b.accept("op-1", "instance-1")

		stop := b.start(b.observed(&faultyClaims{Store: b.store, failing: 1, lost: true}, diary, stage("only", traced("a"))))

		time.Sleep(2500 * time.Millisecond) // fake time, less than a lease
		stop()

		want := []string{"claim failed", "test began", "test picked up after 0s", "a done after 0s", "lease lost", "test left"}
		if diff := cmp.Diff(want, diary.read()); diff != "" {
			b.Errorf("-want +got\n%s", diff)
		}
	})
}
