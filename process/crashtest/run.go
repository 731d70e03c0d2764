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
	// checkInterval is the time between two checks for an event.
	checkInterval = time.Second
	// operationTimeout is how long an operation may take, which is more than any needs.
	operationTimeout = 2 * time.Hour
	// settleTime is how long a run continues after its script, so that late calls have their effect.
	settleTime = 3 * latency
	// poll is the poll interval of replicas: long, because each poll costs real time.
	poll = 4 * time.Second
)

// Run is one run of a scenario.
type Run[D any] struct {
	*testing.T

	env     Env[D]
	faults  *faults
	monitor *monitor
	running sync.WaitGroup
	proxies []*Proxy
}

func newRun[D any](t *testing.T, env Env[D], plan []Fault) *Run[D] {
	t.Helper()

	run := &Run[D]{T: t, env: env, faults: newFaults(plan), monitor: newMonitor()}
	run.startReplica()

	return run
}

// InjectFaults starts counting fault points. Earlier calls only prepare the scenario.
func (p *Run[D]) InjectFaults() { p.faults.activate() }

// Sleep lets time pass. It replaces replicas that die or freeze meanwhile.
func (p *Run[D]) Sleep(d time.Duration) {
	p.Helper()

	for end := time.Now().Add(d); time.Now().Before(end); {
		time.Sleep(min(checkInterval, time.Until(end)))

		if !p.proxies[len(p.proxies)-1].running() {
			p.startReplica()
		}
	}
}

// Await sleeps until the operations have ended.
func (p *Run[D]) Await(operationIDs ...string) {
	p.Helper()

	for _, id := range operationIDs {
		for end := time.Now().Add(operationTimeout); !p.get(id).State.Terminal(); p.Sleep(checkInterval) {
			if time.Now().After(end) {
				p.Fatalf("operation %s does not end: %+v\n%s", id, p.get(id), text(p.timeline(id)))
			}
		}
	}
}

// startReplica starts another replica.
func (p *Run[D]) startReplica() {
	p.Helper()

	ctx, kill := context.WithCancel(context.WithoutCancel(p.Context()))
	proxy := &Proxy{faults: p.faults, kill: kill}
	p.proxies = append(p.proxies, proxy)

	processes := observe(p.env.Processes(proxy), proxy, p.monitor)

	config := process.DefaultConfig()
	config.Poll = poll

	engine, err := process.NewEngine(store{Store: p.env.Store, proxy: proxy, monitor: p.monitor}, config, clock.RealClock{},
		logging.Discard(), processes...)
	if err != nil {
		p.Fatal(err)
	}

	p.running.Go(func() {
		if err := engine.Run(ctx); err != nil {
			p.Error(err)
		}
	})
}

// settle waits for late calls.
func (p *Run[D]) settle() {
	p.Helper()

	for _, proxy := range p.proxies {
		_ = proxy.checkAlive()
	}

	p.Sleep(settleTime)
}

// end stops the remaining replicas.
func (p *Run[D]) end() {
	for _, proxy := range p.proxies {
		proxy.kill()
	}

	p.running.Wait()
}

func (p *Run[D]) get(id string) process.Record {
	p.Helper()

	record, err := p.env.Store.Get(p.Context(), p.env.Store.Reader(), id)
	if err != nil {
		p.Fatal(err)
	}

	return record
}

func (p *Run[D]) timeline(id string) []process.Entry {
	p.Helper()

	timeline, err := p.env.Store.Timeline(p.Context(), id)
	if err != nil {
		p.Fatal(err)
	}

	return timeline
}
