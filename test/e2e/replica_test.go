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
)

const (
	// probeTimeout limits a readiness probe.
	probeTimeout = time.Second
	// probeInterval is the pause between two probes of a replica.
	probeInterval = 100 * time.Millisecond
)

// member is one replica of a service.
type member struct {
	name            string
	address, status string
	begin           func() *program

	running *program
	ready   atomic.Bool
}

// restart starts the program again, without waiting until it is ready.
func (m *member) restart() { m.running = m.begin() }

// replicas are the members of a service. Requests go to the ready members in turn, as with a load balancer.
type replicas struct {
	members []*member
	turn    atomic.Uint32
}

// newReplicas starts replicas of a program. All of them get the variables.
func newReplicas(t *testing.T, service string, count int, variables ...string) *replicas {
	t.Helper()

	path := build(t, service)
	r := &replicas{}

	for i := range count {
		m := &member{name: fmt.Sprintf("%s %d", service, i+1), address: freeAddress(t), status: freeAddress(t)}
		own := append([]string{"APP_ADDRESS=" + m.address, "APP_STATUS_ADDRESS=" + m.status}, variables...)
		m.begin = func() *program { return launch(t, own, path) }
		m.restart()
		r.members = append(r.members, m)
	}

	r.probe(t)

	return r
}

// probe polls the readiness of every member until the test ends.
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

// isReady probes the readiness of a replica.
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

// pick returns the next ready member, or nil.
func (r *replicas) pick() *member {
	for range r.members {
		m := r.members[int(r.turn.Add(1))%len(r.members)]
		if m.ready.Load() {
			return m
		}
	}

	return nil
}

// await waits for the next ready member. It returns nil if the context ends first.
func (r *replicas) await(ctx context.Context) *member {
	for {
		if m := r.pick(); m != nil || rest(ctx) != nil {
			return m
		}
	}
}

// address returns the address of the next ready member, or "".
func (r *replicas) address() string {
	if m := r.pick(); m != nil {
		return m.address
	}

	return ""
}

// count counts the ready members.
func (r *replicas) count() int {
	ready := 0

	for _, m := range r.members {
		if m.ready.Load() {
			ready++
		}
	}

	return ready
}
