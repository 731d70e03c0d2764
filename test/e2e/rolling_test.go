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
	// rollingLease is longer than any pause of a slow machine: an operation is taken over only if it was not handed back.
	rollingLease = 30 * time.Second
	// longestDelay is the default of APP_LEASE_DURATION.
	longestDelay = 6 * time.Second
	// shutdownDelay is much longer than clients need to notice that a replica drains, even on a slow machine.
	shutdownDelay = 50 * probeInterval
	// unreadyLimit limits the time in which all brokers look unready to a client on a slow machine.
	unreadyLimit = shutdownDelay
)

// TestRollingRestart restarts three brokers under load, one after another. Every request gets a response if the client checks the readiness of the
// replicas ten times a second. Replicas hand back their operations, so none is taken over, and none is delayed by more than the default
// lease.
func TestRollingRestart(t *testing.T) {
	f := newFleet(t, "APP_SHUTDOWN_DELAY="+shutdownDelay.String(), "APP_LEASE_DURATION="+rollingLease.String())

	ctx, stop := context.WithCancel(t.Context())
	load := f.steadyLoad(ctx)

	defer load.customers.Wait()
	defer stop()

	for _, m := range f.brokers.members {
		f.until("some instances to be created", load.busy())

		before := load.requests.Load()

		took := f.terminate(m)
		if limit := shutdownDelay + stopLimit; took > limit {
			t.Errorf("%s took %s to stop, want at most %s", m.name, took, limit)
		}

		t.Logf("%s stopped within %s; %d requests got responses until it was ready again",
			m.name, took.Round(time.Millisecond), load.requests.Load()-before)
	}

	stop()
	load.customers.Wait()

	f.until("every operation to end", func() bool { return f.brokerDB.unfinished() == 0 })

	records := f.brokerDB.all()
	f.brokerDB.check(records)

	if taken := f.brokerDB.takenOver(); taken > 0 {
		t.Errorf("%d operations were taken over from replicas that did not hand them back", taken)
	}

	var longest time.Duration

	for id, record := range records {
		timeline, err := f.brokerDB.operations.Timeline(t.Context(), id)
		if err != nil {
			t.Fatal(err)
		}

		held := delay(timeline)
		longest = max(longest, held)

		if held > longestDelay {
			t.Errorf("%s of %s was delayed by %s:\n%s", record.Kind, record.InstanceID, held, readable(timeline))
		}
	}

	t.Logf("%d requests, all with responses; %d operations, delayed by at most %s", load.requests.Load(), len(records), longest)
}

// steady is a load that lasts until its context ends.
type steady struct {
	requests  atomic.Int64
	created   atomic.Int64
	customers sync.WaitGroup
}

// busy returns a condition that holds once a few more instances are created.
func (s *steady) busy() (holds func() bool) {
	const few = 8

	enough := s.created.Load() + few

	return func() bool { return s.created.Load() >= enough }
}

// steadyLoad runs customers that create instances, poll and read the catalog. They send each request once.
func (f *fleet) steadyLoad(ctx context.Context) *steady {
	const customers = 8

	load := &steady{}

	once := func(method, path string, body any, want int) harness.Reply {
		limited, cancel := context.WithTimeout(ctx, unreadyLimit)
		defer cancel()

		m := f.brokers.await(limited)
		if m == nil {
			if ctx.Err() == nil {
				f.Errorf("%s %s: no broker was ready for %s, although only one at a time restarts", method, path, unreadyLimit)
			}

			return harness.Reply{}
		}

		got, err := f.askAt(m, method, path, body)
		load.requests.Add(1)

		if err != nil || got.Status != want {
			f.Errorf("%s %s returned %d %v, %v, want %d", method, path, got.Status, got.Body, err, want)
		}

		return got
	}

	for customer := range customers {
		load.customers.Go(func() {
			for i := 0; ctx.Err() == nil; i++ {
				path := harness.InstancePath(fmt.Sprintf("rolling-%d-%d", customer, i))
				once(http.MethodPut, path+harness.Incomplete, harness.Order(harness.PlanAWS), http.StatusAccepted)

				for ctx.Err() == nil && once(http.MethodGet, path+"/last_operation", nil, http.StatusOK).Text("state") == "in progress" {
					once(http.MethodGet, "/v2/catalog", nil, http.StatusOK)

					_ = rest(ctx) // the loop condition checks the context
				}

				load.created.Add(1)
			}
		})
	}

	return load
}
