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
	// rollingLease is longer than any pause of a slow machine. A lease can therefore expire only if a stopped replica did not
	// release it.
	rollingLease = 30 * time.Second
	// maxDelay is the default of APP_LEASE_DURATION.
	maxDelay = 6 * time.Second
	// shutdownDelay is much longer than clients need to notice that a replica is draining, even on a slow machine.
	shutdownDelay = 50 * probeInterval
	// unreadyLimit is the maximum time for which a client on a slow machine may see no ready replica of the broker.
	unreadyLimit = shutdownDelay
)

// TestRollingRestart restarts three replicas of the broker under load, one after another. A client that probes readiness ten
// times a second must get a response to every request. A stopping replica must release its leases, so that no operation is
// taken over or delayed by more than the default lease duration.
func TestRollingRestart(t *testing.T) {
	f := newFleet(t, "APP_SHUTDOWN_DELAY="+shutdownDelay.String(), "APP_LEASE_DURATION="+rollingLease.String())

	ctx, stop := context.WithCancel(t.Context())
	load := f.startSteadyLoad(ctx)

	defer load.customers.Wait()
	defer stop()

	for _, m := range f.brokers.members {
		f.until("some instances to be created", load.moreCreated())

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

	records := f.brokerDB.records()
	f.brokerDB.checkTimelines(records)

	if taken := f.brokerDB.takeovers(); taken > 0 {
		t.Errorf("%d operations were taken over from replicas that did not hand them back", taken)
	}

	var longest time.Duration

	for id, record := range records {
		timeline, err := f.brokerDB.operations.Timeline(t.Context(), id)
		if err != nil {
			t.Fatal(err)
		}

		delayed := delay(timeline)
		longest = max(longest, delayed)

		if delayed > maxDelay {
			t.Errorf("%s of %s was delayed by %s:\n%s", record.Kind, record.InstanceID, delayed, formatTimeline(timeline))
		}
	}

	t.Logf("%d requests, all with a response; %d operations, delayed by at most %s", load.requests.Load(), len(records), longest)
}

// steadyLoad counts the requests and the created instances of a load that lasts until its context ends.
type steadyLoad struct {
	requests  atomic.Int64
	created   atomic.Int64
	customers sync.WaitGroup
}

// moreCreated returns a condition that becomes true once a few more instances have been created.
func (s *steadyLoad) moreCreated() (holds func() bool) {
	const few = 8

	enough := s.created.Load() + few

	return func() bool { return s.created.Load() >= enough }
}

// startSteadyLoad starts customers that create instances, poll and read the catalog. A customer sends each request only once.
func (f *fleet) startSteadyLoad(ctx context.Context) *steadyLoad {
	const customers = 8

	load := &steadyLoad{}

	once := func(method, path string, body any, want int) harness.Reply {
		limited, cancel := context.WithTimeout(ctx, unreadyLimit)
		defer cancel()

		m := f.brokers.waitForReady(limited)
		if m == nil {
			if ctx.Err() == nil {
				f.Errorf("%s %s: no broker was ready for %s, although only one replica restarts at a time", method, path, unreadyLimit)
			}

			return harness.Reply{}
		}

		got, err := f.sendTo(m, method, path, body)
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

					_ = pause(ctx) // the loop condition checks the context
				}

				load.created.Add(1)
			}
		})
	}

	return load
}
