package crashtest

import (
	"context"
	"sync"
	"testing"
	"time"

	"k8s.io/utils/clock"

	"github.com/environment-broker/environment-broker/internal/logging"
	"github.com/environment-broker/environment-broker/process"
)

const (
	// checkInterval is the time between two checks of a condition.
	checkInterval = time.Second
	// operationTimeout limits the wait for an operation. No operation takes that long.
	operationTimeout = 2 * time.Hour
	// backgroundTimeout limits the wait for background work, whose pauses grow to an hour.
	backgroundTimeout = 12 * time.Hour
	// settleTime is the time between the end of the operations and the checks. Late calls take effect in this time.
	settleTime = 3 * latency
	// pollInterval is the poll interval of replicas. It is long because each poll costs real time.
	pollInterval = 4 * time.Second
)

// Run is one run of a scenario, and the argument of its script. Its methods are called from the goroutine of the test.
type Run[D any] struct {
	*testing.T

	env     Env[D]
	faults  *faults
	monitor *monitor
	running sync.WaitGroup
	// proxies are the proxies of the replicas, in the order in which the replicas started. When the last one has died or is
	// frozen, Sleep starts another.
	proxies []*Proxy
}

func newRun[D any](t *testing.T, env Env[D], faults *faults) *Run[D] {
	t.Helper()

	run := &Run[D]{T: t, env: env, faults: faults, monitor: newMonitor()}
	run.startReplica()

	return run
}

// InjectFaults starts counting fault points. Earlier calls only prepare the scenario and never get a fault.
func (r *Run[D]) InjectFaults() { r.faults.activate() }

// Sleep sleeps in fake time. It starts a new replica whenever the current one has died or is frozen.
func (r *Run[D]) Sleep(d time.Duration) {
	r.Helper()

	for end := time.Now().Add(d); time.Now().Before(end); {
		time.Sleep(min(checkInterval, time.Until(end)))

		if !r.proxies[len(r.proxies)-1].running() {
			r.startReplica()
		}
	}
}

// Await sleeps until the operations have ended. If an operation takes longer than operationTimeout, Await fails the test and shows
// the timeline of that operation.
func (r *Run[D]) Await(operationIDs ...string) {
	r.Helper()

	for _, id := range operationIDs {
		for end := time.Now().Add(operationTimeout); !r.get(id).State.Terminal(); r.Sleep(checkInterval) {
			if time.Now().After(end) {
				r.Fatalf("operation %s has not ended: %+v\n%s", id, r.get(id), text(r.timeline(id)))
			}
		}
	}
}

// Complete is Await for an operation that prepares the scenario: it fails the test unless the operation succeeds.
func (r *Run[D]) Complete(operationID string) {
	r.Helper()
	r.Await(operationID)

	if record := r.get(operationID); record.State != process.Succeeded {
		r.Fatalf("the scenario needs the operation %s, but it ended as %s: %s\n%s", record.Kind, record.State, record.Description, text(r.timeline(operationID)))
	}
}

// Until sleeps until the background work has made the condition true. After backgroundTimeout, it fails the test.
func (r *Run[D]) Until(condition string, holds func() bool) {
	r.Helper()

	for end := time.Now().Add(backgroundTimeout); !holds(); r.Sleep(checkInterval) {
		if time.Now().After(end) {
			r.Fatalf("after %s, this still does not hold: %s", backgroundTimeout, condition)
		}
	}
}

// startReplica starts a replica with its own engine, proxy, processes and background work.
func (r *Run[D]) startReplica() {
	r.Helper()

	ctx, kill := context.WithCancel(context.WithoutCancel(r.Context()))
	proxy := &Proxy{faults: r.faults, kill: kill}
	r.proxies = append(r.proxies, proxy)

	processes := observe(r.env.Processes(proxy), proxy, r.monitor)

	config := process.DefaultConfig()
	config.Poll = pollInterval

	engine, err := process.NewEngine(store{Store: r.env.Store, proxy: proxy, monitor: r.monitor}, config, clock.RealClock{},
		logging.Discard(), processes...)
	if err != nil {
		r.Fatal(err)
	}

	r.running.Go(func() {
		if err := engine.Run(ctx); err != nil {
			r.Error(err)
		}
	})

	if r.env.Background == nil {
		return
	}

	for _, part := range r.env.Background(proxy) {
		r.running.Go(func() {
			if err := part.Run(ctx); err != nil {
				r.Error(err)
			}
		})
	}
}

// settle waits until frozen replicas continue and late calls have taken effect, so that the checks see their effects.
func (r *Run[D]) settle() {
	r.Helper()

	for _, proxy := range r.proxies {
		_ = proxy.checkAlive()
	}

	r.Sleep(settleTime)
}

// end stops the remaining replicas.
func (r *Run[D]) end() {
	for _, proxy := range r.proxies {
		proxy.kill()
	}

	r.running.Wait()
}

func (r *Run[D]) get(id string) process.Record {
	r.Helper()

	record, err := r.env.Store.Get(r.Context(), r.env.Store.Reader(), id)
	if err != nil {
		r.Fatal(err)
	}

	return record
}

func (r *Run[D]) timeline(id string) []process.Entry {
	r.Helper()

	timeline, err := r.env.Store.Timeline(r.Context(), id)
	if err != nil {
		r.Fatal(err)
	}

	return timeline
}
