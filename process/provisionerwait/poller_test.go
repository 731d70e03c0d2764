package provisionerwait_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestALonePollIsSentAtOnce(t *testing.T) {
	onFakeTime(t, 50, func(f fixture) {
		for range 3 {
			began := time.Now()

			if f.polls("tenant", "one"); time.Since(began) != 0 {
				f.Errorf("the poll took %s", time.Since(began))
			}

			time.Sleep(spacing)
		}

		f.wantRequests("every poll is a request", []string{"one"}, []string{"one"}, []string{"one"})
	})
}

func TestPollsAtTheSameTimeShareARequest(t *testing.T) {
	onFakeTime(t, 50, func(f fixture) {
		f.together("tenant", "only")
		f.together("tenant", "a", "b", "c")
		f.wantRequests("the polls after the first are collected", []string{"only"}, []string{"a", "b", "c"})

		if took := time.Since(f.start); took != spacing {
			f.Errorf("the polls took %s, want the spacing of requests", took)
		}
	})
}

// TestAFullRequest checks that polls that do not fit into the next request of their tenant do not occupy workers.
func TestAFullRequest(t *testing.T) {
	onFakeTime(t, 50, func(f fixture) {
		f.polls("tenant", "first")

		var (
			group sync.WaitGroup
			later atomic.Int64
		)

		for _, id := range operations(most + 7) {
			group.Go(func() {
				if wait := f.polls("tenant", id); wait > 0 {
					later.Add(1)

					if wait != 2*spacing {
						f.Errorf("%s comes back after %s, want the request after the next", id, wait)
					}
				}
			})
		}

		group.Wait()

		if requests := f.sent(); later.Load() != 7 || len(requests) != 2 || len(requests[1]) != most {
			f.Errorf("%d polls come back, %d requests", later.Load(), len(requests))
		}
	})
}

// TestALateRequestCountsForTheSpacing checks that the spacing counts from the time at which a request was sent, not from the time
// of its slot.
func TestALateRequestCountsForTheSpacing(t *testing.T) {
	onFakeTime(t, 1, func(f fixture) {
		f.polls("another tenant", "operation")

		if wait := f.polls("tenant", "late"); wait != time.Second {
			f.Fatalf("the poll waits for %s", wait)
		}

		time.Sleep(2 * time.Second)
		f.polls("tenant", "late")

		began := time.Now()

		if f.polls("tenant", "next"); time.Since(began) != spacing {
			f.Errorf("the next request was sent after %s", time.Since(began))
		}
	})
}

func TestARequestIncludesExpectedPolls(t *testing.T) {
	onFakeTime(t, 50, func(f fixture) {
		const lead = time.Second

		f.expect("tenant", leadShare*lead, "soon")
		f.expect("tenant", leadShare*(lead+time.Millisecond), "later")
		f.expect("another tenant", leadShare*lead, "foreign")

		time.Sleep((leadShare - 1) * lead)
		f.polls("tenant", "now")
		time.Sleep(lead)

		f.polls("tenant", "soon")
		f.wantRequests("soon finds its result", []string{"now", "soon"})

		f.polls("tenant", "soon")
		f.wantRequests("a result is used once", []string{"now", "soon"}, []string{"later", "soon"})

		time.Sleep(lead + lateness + 2*time.Millisecond)

		f.polls("tenant", "later")
		f.wantRequests("an old result is not used", []string{"now", "soon"}, []string{"later", "soon"}, []string{"later"})
	})
}

// TestAnExpectedPollIsAskedForOnce checks that requests do not repeatedly include an operation that another replica has taken
// over.
func TestAnExpectedPollIsAskedForOnce(t *testing.T) {
	onFakeTime(t, 50, func(f fixture) {
		f.expect("tenant", 0, "gone")

		for range 3 {
			f.polls("tenant", "here")
			time.Sleep(lateness + time.Second)
		}

		f.wantRequests("gone never polls", []string{"gone", "here"}, []string{"here"}, []string{"here"})
	})
}

func TestARequestTakesThosePollsFirstThatWaitForIt(t *testing.T) {
	onFakeTime(t, 50, func(f fixture) {
		f.polls("tenant", "first")
		f.expect("tenant", 0, operations(2*most)...)
		f.together("tenant", "x", "y", "z")

		requests := f.sent()
		if len(requests) != 2 || len(requests[1]) != most {
			f.Fatalf("%d requests, the last one for %d operations", len(requests), len(requests[len(requests)-1]))
		}

		for _, id := range []string{"x", "y", "z"} {
			if !slices.Contains(requests[1], id) {
				f.Errorf("the request does not include %s, which waits for it", id)
			}
		}
	})
}

func TestTheLimitGivesTenantsATurn(t *testing.T) {
	const half = time.Second / 2

	onFakeTime(t, 2, func(f fixture) {
		waits := func(tenants ...string) (waits []time.Duration) {
			for _, tenant := range tenants {
				waits = append(waits, f.polls(tenant, "operation of "+tenant))
			}

			return waits
		}
		wantWaits := func(what string, got []time.Duration, want ...time.Duration) {
			f.Helper()

			if diff := cmp.Diff(want, got); diff != "" {
				f.Errorf("%s: -want +got:\n%s", what, diff)
			}
		}

		wantWaits("two requests may be sent in a second", waits("a", "b", "c", "d"), 0, 0, half, 2*half)
		wantWaits("an operation that is early keeps its turn", waits("c", "d"), half, 2*half)

		if wait := f.polls("d", "another"); wait != 2*half {
			f.Errorf("another operation of a waiting tenant waits for %s, want the same turn", wait)
		}

		time.Sleep(half)

		wantWaits("a turn is kept even after requests of others", waits("e", "c"), 2*half, 0)
		wantWaits("a later poll needs a new turn", waits("c"), 3*half)

		time.Sleep(time.Minute - time.Second)

		wantWaits("missed turns stay valid", waits("d", "e", "c"), 0, 0, 0)

		if wait := f.polls("d", "another"); wait != 0 || len(f.sent()) != 6 {
			f.Errorf("the other operation of the tenant waits for %s after %d requests, want 6", wait, len(f.sent()))
		}

		wantWaits("missed turns do not delay others", waits("f", "g", "h"), 0, 0, half)
	})
}

// TestManyOperations checks that 1,000 operations that start polling at the same time stay within the limit and still poll often
// enough. Each polls as often as the broker does in the first seconds of an operation.
func TestManyOperations(t *testing.T) {
	const (
		count   = 1000
		seconds = 10
		limit   = 50
	)

	cases := map[string]struct {
		reason  string
		tenants int
		// most is the maximum number of requests in any second. least is the minimum number of polls of each operation.
		most, least int
	}{
		"one tenant":  {"20 requests ask for 1,000 operations", 1, 20, seconds - 2},
		"100 tenants": {"each tenant needs requests of its own, so the limit delays their polls", 100, 2 * limit, seconds / 3},
	}

	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			onFakeTime(t, limit, func(f fixture) {
				f.takes = 10 * time.Millisecond

				var group sync.WaitGroup

				polled := make([]int, count)

				for i, id := range operations(count) {
					group.Go(func() { polled[i] = f.pollFor(seconds*time.Second, fmt.Sprint("tenant ", i%tc.tenants), id) })
				}

				group.Wait()

				if least := slices.Min(polled); least < tc.least {
					f.Errorf("%s: an operation has polled %d times in %d s, want at least %d", tc.reason, least, seconds, tc.least)
				}

				requests := f.all()
				for i, request := range requests {
					if len(request.ids) > most {
						f.Errorf("a request asks for %d operations", len(request.ids))
					}

					last := i + tc.most
					if last < len(requests) && requests[last].at.Sub(request.at) < time.Second {
						f.Fatalf("%s: more than %d requests within %s", tc.reason, tc.most, requests[last].at.Sub(request.at))
					}

					// The requests so far must not exceed the limit and its burst. The limiter rounds times, so a millisecond is
					// tolerated.
					elapsed := request.at.Sub(f.start)
					if allowed := limit + int((elapsed+time.Millisecond)*limit/time.Second); i >= allowed {
						f.Fatalf("%s: %d requests in %s, allowed are %d", tc.reason, i+1, elapsed, allowed)
					}
				}
			})
		})
	}
}

// pollFor polls an operation about every second, as a Waiter and the engine do, and returns the number of results.
func (f fixture) pollFor(period time.Duration, tenant, id string) (polled int) {
	for time.Since(f.start) < period {
		_, wait, err := f.poller.Poll(f.Context(), tenant, id)
		if err != nil {
			f.Error(err)

			return polled
		}

		if wait == 0 {
			polled++

			wait = time.Second + time.Duration(rand.Int64N(int64(spacing)))
			f.poller.Expect(tenant, id, wait)
		}

		time.Sleep(wait)
	}

	return polled
}
