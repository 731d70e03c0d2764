//go:build garden

package e2e

import (
	"context"
	"fmt"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/environment-broker/environment-broker/test/harness"
)

const (
	// probeTimeout limits the duration of a readiness probe.
	probeTimeout = time.Second
	// probeInterval is the pause between two probes of a replica.
	probeInterval = 100 * time.Millisecond
)

// member is one replica of a service.
type member struct {
	name            string
	address, status string
	start           func() *harness.Program

	running *harness.Program
	ready   atomic.Bool
}

// restart starts the program again, without waiting until it is ready.
func (m *member) restart() { m.running = m.start() }

// replicas contains the replicas of a service. nextReady distributes requests among the ready replicas, like a load balancer.
type replicas struct {
	members []*member
	turn    atomic.Uint32
}

// newReplicas starts count replicas of a service. variables contains environment variables for every replica.
func newReplicas(t *testing.T, service string, count int, variables ...string) *replicas {
	t.Helper()

	path := harness.Build(t, service)
	r := &replicas{}

	for i := range count {
		m := &member{name: fmt.Sprintf("%s %d", service, i+1), address: harness.FreeAddress(t), status: harness.FreeAddress(t)}
		own := append([]string{"APP_ADDRESS=" + m.address, "APP_STATUS_ADDRESS=" + m.status}, variables...)
		m.start = func() *harness.Program { return harness.Launch(t, own, path) }
		m.restart()
		r.members = append(r.members, m)
	}

	r.probe(t)

	return r
}

// probe polls the readiness of every replica until the test ends.
func (r *replicas) probe(t *testing.T) {
	t.Helper()

	ctx, stop := context.WithCancel(context.Background())

	var probes sync.WaitGroup

	for _, m := range r.members {
		probes.Go(func() {
			ticker := time.NewTicker(probeInterval)
			defer ticker.Stop()

			for ctx.Err() == nil {
				m.ready.Store(isReady(ctx, m.status))

				select {
				case <-ctx.Done():
				case <-ticker.C:
				}
			}
		})
	}

	t.Cleanup(func() {
		stop()
		probes.Wait()
	})
}

// isReady reports whether the replica with the given status address reports that it is ready.
func isReady(ctx context.Context, status string) bool {
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()

	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+status+"/readyz", nil)
	if err != nil {
		return false
	}

	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return false
	}
	defer response.Body.Close()

	return response.StatusCode == http.StatusOK
}

// nextReady returns the next ready replica, or nil if no replica is ready.
func (r *replicas) nextReady() *member {
	for range r.members {
		m := r.members[int(r.turn.Add(1))%len(r.members)]
		if m.ready.Load() {
			return m
		}
	}

	return nil
}

// waitForReady waits for the next ready replica. It returns nil if the context ends first.
func (r *replicas) waitForReady(ctx context.Context) *member {
	for {
		if m := r.nextReady(); m != nil || pause(ctx) != nil {
			return m
		}
	}
}

// address returns the address of the next ready replica, or "" if no replica is ready.
func (r *replicas) address() string {
	if m := r.nextReady(); m != nil {
		return m.address
	}

	return ""
}

func (r *replicas) readyCount() int {
	ready := 0

	for _, m := range r.members {
		if m.ready.Load() {
			ready++
		}
	}

	return ready
}
