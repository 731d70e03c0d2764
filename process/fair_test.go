package process_test

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/utils/clock"

	"github.com/environment-broker/environment-broker/internal/logging"
	"github.com/environment-broker/environment-broker/process"
)

// blocking is a step that runs until its replica stops.
func blocking(name string) *step {
	return &step{name: name, work: func(ctx context.Context, operation operation) (operation, time.Duration, error) {
		<-ctx.Done()

		return operation, 0, ctx.Err()
	}}
}

// startSlowAndQuick starts an engine with two kinds of operations. Operations of kind slow never end, and operations of kind
// quick end immediately.
func (b *fixture) startSlowAndQuick(workers int, limits map[string]int) (slow *step) {
	b.Helper()

	config := process.DefaultConfig()
	config.Workers, config.Limits, config.Grace = workers, limits, time.Second
	slow = blocking("Slow")

	engine, err := process.NewEngine(b.store, config, clock.RealClock{}, logging.Discard(),
		process.Process[data]{Kind: "slow", Limit: limit, Stages: []process.Stage[data]{stage("s", slow)}},
		process.Process[data]{Kind: "quick", Limit: limit, Stages: []process.Stage[data]{stage("q", succeeding("Quick"))}},
	)
	if err != nil {
		b.Fatal(err)
	}

	b.start(engine)

	return slow
}

func TestKindsShareTheWorkers(t *testing.T) {
	cases := map[string]struct {
		reason  string
		workers int
		limits  map[string]int
		want    int
		starved bool
	}{
		"reserved":  {"a quarter of the workers is reserved for each of two kinds", 8, nil, 6, false},
		"limited":   {"an operator limits a kind", 8, map[string]int{"slow": 2}, 2, false},
		"unlimited": {"a limit above the share has no effect", 8, map[string]int{"slow": 100}, 6, false},
		"few":       {"with too few workers to reserve any, the first operations run first", 3, nil, 3, true},
		"none":      {"a replica without workers runs nothing", 0, nil, 0, true},
	}

	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(b *fixture) {
				for i := range 20 {
					b.acceptNew(process.New{ID: fmt.Sprintf("slow-%d", i), Kind: "slow", InstanceID: fmt.Sprintf("instance-%d", i)})
				}

				slow := b.startSlowAndQuick(c.workers, c.limits)

				time.Sleep(time.Minute)
				synctest.Wait()

				if slow.runs() != c.want {
					b.Errorf("%s: %d run, want %d", c.reason, slow.runs(), c.want)
				}

				b.acceptNew(process.New{ID: "quick", Kind: "quick", InstanceID: "other"})
				time.Sleep(time.Minute)

				if starved := !b.get("quick").State.Terminal(); starved != c.starved {
					b.Errorf("%s: the other kind starves: %t, want %t", c.reason, starved, c.starved)
				}
			})
		})
	}
}

func TestInvalidLimits(t *testing.T) {
	for reason, limits := range map[string]map[string]int{
		"an unknown kind":             {"provison": 1},
		"a kind that would never run": {"test": 0},
	} {
		config := process.DefaultConfig()
		config.Limits = limits

		_, err := process.NewEngine(nil, config, clock.RealClock{}, logging.Discard(),
			process.Process[data]{Kind: "test", Limit: limit, Stages: []process.Stage[data]{stage("s", succeeding("A"))}})
		if err == nil || !strings.Contains(err.Error(), "one of test") {
			t.Errorf("%s: got %v", reason, err)
		}
	}
}

// TestTenantsTakeTurns checks that with one worker, the operation of another tenant runs second although a thousand operations
// were accepted before it.
func TestTenantsTakeTurns(t *testing.T) {
	inBubble(t, func(b *fixture) {
		const flood = 1000

		for i := range flood {
			b.acceptNew(process.New{ID: fmt.Sprintf("flood-%d", i), Kind: "test", InstanceID: fmt.Sprintf("f-%d", i), Tenant: "flooding"})
		}

		b.acceptNew(process.New{ID: "first", Kind: "test", InstanceID: "1", Tenant: "other"})
		b.acceptNew(process.New{ID: "second", Kind: "test", InstanceID: "2", Tenant: "other"})
		b.acceptNew(process.New{ID: "third", Kind: "test", InstanceID: "3", Tenant: "another"})

		var order []string

		note := &step{name: "Note", work: func(_ context.Context, operation operation) (operation, time.Duration, error) {
			order = append(order, operation.ID)

			return operation, 0, nil
		}}

		config := process.DefaultConfig()
		config.Workers = 1

		engine, err := process.NewEngine(b.store, config, clock.RealClock{}, logging.Discard(),
			process.Process[data]{Kind: "test", Limit: limit, Stages: []process.Stage[data]{stage("s", note)}})
		if err != nil {
			b.Fatal(err)
		}

		b.start(engine)
		b.await("second")
		b.await("third")

		if got := strings.Join(order[:5], " "); got != "flood-0 first third flood-1 second" {
			b.Errorf("ran in the order %s", got)
		}

		b.await(fmt.Sprintf("flood-%d", flood-1))
	})
}

// TestRequestsComeFirst checks that an engine uses one in 15 of its workers while requests wait, and all of them afterwards.
func TestRequestsComeFirst(t *testing.T) {
	inBubble(t, func(b *fixture) {
		for i := range 60 {
			b.acceptNew(process.New{ID: fmt.Sprintf("slow-%d", i), Kind: "slow", InstanceID: fmt.Sprintf("instance-%d", i)})
		}

		var busy atomic.Bool

		busy.Store(true)

		config := process.DefaultConfig()
		config.Workers, config.Busy, config.Grace = 45, busy.Load, time.Second
		slow := blocking("Slow")

		engine, err := process.NewEngine(b.store, config, clock.RealClock{}, logging.Discard(),
			process.Process[data]{Kind: "slow", Limit: limit, Stages: []process.Stage[data]{stage("s", slow)}})
		if err != nil {
			b.Fatal(err)
		}

		b.start(engine)

		for _, want := range []int{3, 45} {
			time.Sleep(time.Minute)
			synctest.Wait()

			if slow.runs() != want {
				b.Errorf("%d operations run while busy is %t, want %d", slow.runs(), busy.Load(), want)
			}

			busy.Store(false)
		}
	})
}
