package provisionerwait_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/environment-broker/environment-broker/internal/failure"
	"github.com/environment-broker/environment-broker/internal/provisionerclient"
	"github.com/environment-broker/environment-broker/process/provisionerwait"
)

// Copies of the package's constants, so that an accidental change fails the tests.
const (
	most         = 50
	spacing      = 50 * time.Millisecond
	leadShare    = 4
	lateness     = 2 * time.Second
	forgetAfter  = time.Minute
	maxPolls     = 50_000
	retryBatches = 5 * time.Minute
)

// request is a request that a Poller has sent.
type request struct {
	at     time.Time
	tenant string
	ids    []string
	// canceled is why the request ended early, or nil.
	canceled error
}

// statuses records the requests of a Poller and answers them with unfinished operations.
type statuses struct {
	// takes is how long a request takes.
	takes time.Duration
	// answer, unless nil, overrides the answer about an operation. The request asks for count operations.
	answer func(id string, count int) error

	mutex    sync.Mutex
	requests []request
}

func (s *statuses) OperationStatuses(ctx context.Context, tenant string, ids []string) map[string]provisionerclient.OperationResult {
	s.mutex.Lock()
	number := len(s.requests)
	s.requests = append(s.requests, request{at: time.Now(), tenant: tenant, ids: slices.Clone(ids)})
	s.mutex.Unlock()

	select {
	case <-ctx.Done():
	case <-time.After(s.takes):
	}

	s.mutex.Lock()
	s.requests[number].canceled = ctx.Err()
	s.mutex.Unlock()

	results := map[string]provisionerclient.OperationResult{}

	for _, id := range ids {
		result := provisionerclient.OperationResult{Err: ctx.Err()}
		if s.answer != nil && result.Err == nil {
			result.Err = s.answer(id, len(ids))
		}

		if result.Err == nil {
			result.Operation = provisionerclient.Operation{ID: id, State: provisionerclient.StateInProgress}
		}

		results[id] = result
	}

	return results
}

func (s *statuses) all() []request {
	s.mutex.Lock()
	defer s.mutex.Unlock()

	return slices.Clone(s.requests)
}

// sent returns the operations of each request.
func (s *statuses) sent() (operations [][]string) {
	for _, each := range s.all() {
		operations = append(operations, each.ids)
	}

	return operations
}

// fixture is a Poller on fake time.
type fixture struct {
	*testing.T
	*statuses

	poller *provisionerwait.Poller
	start  time.Time
}

func onFakeTime(t *testing.T, perSecond int, test func(f fixture)) {
	t.Helper()

	synctest.Test(t, func(t *testing.T) {
		asked := &statuses{}
		test(fixture{T: t, statuses: asked, poller: provisionerwait.NewPoller(asked, perSecond), start: time.Now()})
	})
}

// polls polls an operation once and returns how long it has to wait.
func (f fixture) polls(tenant, id string) time.Duration {
	f.Helper()

	status, wait, err := f.poller.Poll(f.Context(), tenant, id)
	if err != nil || wait == 0 && status.ID != id {
		f.Errorf("polling %s: got %+v, %v", id, status, err)
	}

	return wait.Round(time.Millisecond)
}

// together polls the operations at the same time and returns when all have their results.
func (f fixture) together(tenant string, ids ...string) {
	f.Helper()

	var group sync.WaitGroup

	for _, id := range ids {
		group.Go(func() { f.polls(tenant, id) })
	}

	group.Wait()
}

// expect announces polls after the interval.
func (f fixture) expect(tenant string, interval time.Duration, ids ...string) {
	for _, id := range ids {
		f.poller.Expect(tenant, id, interval)
	}
}

// wantRequests compares the operations of all requests, each in any order.
func (f fixture) wantRequests(reason string, want ...[]string) {
	f.Helper()

	got := f.sent()
	for _, ids := range got {
		slices.Sort(ids)
	}

	if diff := cmp.Diff(want, got); diff != "" {
		f.Errorf("%s: -want +got:\n%s", reason, diff)
	}
}

// operations returns count different IDs.
func operations(count int) (ids []string) {
	for i := range count {
		ids = append(ids, fmt.Sprintf("operation-%04d", i))
	}

	return ids
}

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

// TestAFullRequest: polls that do not fit into the next request of their tenant do not hold workers.
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

// TestALateRequestCountsForTheSpacing: the spacing counts from the time at which a request was sent, not from its turn.
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

// TestAnExpectedPollIsAskedForOnce: if another replica has taken the operation, requests do not include it again and again.
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
		same := func(what string, got []time.Duration, want ...time.Duration) {
			f.Helper()

			if diff := cmp.Diff(want, got); diff != "" {
				f.Errorf("%s: -want +got:\n%s", what, diff)
			}
		}

		same("two requests may be sent in a second", waits("a", "b", "c", "d"), 0, 0, half, 2*half)
		same("an operation that is early keeps its turn", waits("c", "d"), half, 2*half)

		if wait := f.polls("d", "another"); wait != 2*half {
			f.Errorf("another operation of a waiting tenant waits for %s, want the same turn", wait)
		}

		time.Sleep(half)

		same("a turn is kept even after requests of others", waits("e", "c"), 2*half, 0)
		same("a later poll needs a new turn", waits("c"), 3*half)

		time.Sleep(time.Minute - time.Second)

		same("missed turns stay valid", waits("d", "e", "c"), 0, 0, 0)

		if wait := f.polls("d", "another"); wait != 0 || len(f.sent()) != 6 {
			f.Errorf("the other operation of the tenant waits for %s after %d requests, want 6", wait, len(f.sent()))
		}

		same("missed turns do not delay others", waits("f", "g", "h"), 0, 0, half)
	})
}

// TestManyOperations polls 1,000 operations as often as the broker does in their first seconds. The operations poll for the first time
// all at once.
func TestManyOperations(t *testing.T) {
	const (
		count   = 1000
		seconds = 10
		limit   = 50
	)

	cases := map[string]struct {
		reason  string
		tenants int
		// most bounds the requests in any second, least the polls of each operation in all seconds.
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

					// All requests so far are within the limit and its burst. The limiter rounds to less than a millisecond.
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

// polling polls in a goroutine of its own. The result is ready when the channel has it.
func (f fixture) polling(ctx context.Context, tenant, id string) <-chan error {
	ended := make(chan error, 1)

	go func() {
		_, _, err := f.poller.Poll(ctx, tenant, id)
		ended <- err
	}()

	synctest.Wait()

	return ended
}

// wantCanceled expects that a poll has ended because of its context.
func (f fixture) wantCanceled(what string, ended <-chan error) {
	f.Helper()
	synctest.Wait()

	select {
	case err := <-ended:
		if !errors.Is(err, context.Canceled) || !failure.Is(err, failure.Transient) || failure.Of(err).Component != failure.ComponentProvisioner {
			f.Errorf("%s: got %v", what, err)
		}
	default:
		f.Fatalf("%s: the poll still waits", what)
	}
}

func TestACanceledPollLeavesTheCollection(t *testing.T) {
	onFakeTime(t, 50, func(f fixture) {
		f.polls("tenant", "first")

		ctx, cancel := context.WithCancel(f.Context())
		leaves, stays := f.polling(ctx, "tenant", "leaves"), f.polling(f.Context(), "tenant", "stays")

		cancel()
		f.wantCanceled("a poll that waits for its request", leaves)

		if err := <-stays; err != nil {
			f.Error(err)
		}

		f.wantRequests("the request does not ask for an operation that has left", []string{"first"}, []string{"stays"})
	})
}

func TestARequestOutlivesThePollThatSentIt(t *testing.T) {
	onFakeTime(t, 50, func(f fixture) {
		f.takes = time.Minute
		f.expect("tenant", 0, "stays")

		ctx, cancel := context.WithCancel(f.Context())
		leaves, stays := f.polling(ctx, "tenant", "leaves"), f.polling(f.Context(), "tenant", "stays")

		cancel()
		f.wantCanceled("the poll that has sent the request", leaves)

		if err := <-stays; err != nil {
			f.Error(err)
		}

		f.wantRequests("both polls share a request", []string{"leaves", "stays"})
	})
}

func TestARequestWithoutPollsIsCanceled(t *testing.T) {
	onFakeTime(t, 50, func(f fixture) {
		f.takes = time.Minute
		f.expect("tenant", 0, "two", "three", "four")

		ctx, cancel := context.WithCancel(f.Context())
		one, two := f.polling(ctx, "tenant", "one"), f.polling(ctx, "tenant", "two")

		cancel()
		f.wantCanceled("the first poll", one)
		f.wantCanceled("the second poll", two)

		if err := f.all()[0].canceled; !errors.Is(err, context.Canceled) {
			f.Errorf("the request ended with %v, want a cancellation", err)
		}

		f.takes = 0
		time.Sleep(spacing)

		f.polls("tenant", "three")
		f.polls("tenant", "four")
		f.wantRequests("a canceled request is repeated", []string{"four", "one", "three", "two"}, []string{"four", "three"})
	})
}

func TestErrorsOfOperations(t *testing.T) {
	onFakeTime(t, 50, func(f fixture) {
		refused := failure.New(failure.NotFound, "there is no such operation")
		f.answer = func(id string, _ int) error {
			if id == "unknown" {
				return refused
			}

			return nil
		}

		f.expect("tenant", 0, "known", "unknown")
		f.polls("tenant", "first")

		if _, _, err := f.poller.Poll(f.Context(), "tenant", "unknown"); !errors.Is(err, refused) {
			f.Errorf("got %v, want the error of the operation", err)
		}

		f.polls("tenant", "known")
		f.wantRequests("all three share a request", []string{"first", "known", "unknown"})
	})
}

func TestAnErrorOfTheRequestIsThatOfEachOperation(t *testing.T) {
	onFakeTime(t, 50, func(f fixture) {
		away := failure.New(failure.Transient, "the Provisioner is unavailable")
		f.answer = func(string, int) error { return away }

		f.expect("tenant", 0, "b", "c")

		for _, id := range []string{"a", "b", "c"} {
			if _, _, err := f.poller.Poll(f.Context(), "tenant", id); !errors.Is(err, away) {
				f.Errorf("%s: got %v, want the error of the request", id, err)
			}
		}

		f.wantRequests("the operations share the request and its error", []string{"a", "b", "c"})

		f.answer = nil
		time.Sleep(spacing)
		f.polls("tenant", "b")
		f.wantRequests("the next poll asks again", []string{"a", "b", "c"}, []string{"b"})
	})
}

// TestAProvisionerThatRejectsBatches gets requests for single operations, at the rate of the limit, until the next attempt.
func TestAProvisionerThatRejectsBatches(t *testing.T) {
	onFakeTime(t, 50, func(f fixture) {
		f.answer = func(_ string, count int) error {
			if count > 1 {
				return fmt.Errorf("rejected: %w", provisionerclient.ErrTooManyOperations)
			}

			return nil
		}

		f.expect("tenant", 0, "b")

		if _, _, err := f.poller.Poll(f.Context(), "tenant", "a"); !errors.Is(err, provisionerclient.ErrTooManyOperations) {
			f.Errorf("got %v", err)
		}

		rejected := []string{"a", "b"}
		time.Sleep(retryBatches - time.Second)

		f.expect("tenant", 0, "b")

		began := time.Now()

		f.polls("tenant", "a")
		f.polls("tenant", "b")

		if took := time.Since(began); took != 0 {
			f.Errorf("requests for single operations of a tenant wait for each other: %s", took)
		}

		f.wantRequests("each operation is requested on its own", rejected, []string{"a"}, []string{"b"})

		f.answer = nil
		time.Sleep(time.Second)
		f.expect("tenant", 0, "b")
		f.polls("tenant", "a")
		f.wantRequests("later, a request for both is tried again", rejected, []string{"a"}, []string{"b"}, rejected)
	})
}

func TestForgottenPolls(t *testing.T) {
	onFakeTime(t, 50, func(f fixture) {
		f.expect("tenant", 0, "overdue")
		time.Sleep(forgetAfter)
		f.polls("tenant", "new")
		f.wantRequests("an operation that is long overdue is not asked about", []string{"new"})

		f.expect("tenant", 0, operations(maxPolls)...)
		f.expect("tenant", 0, "last")
		time.Sleep(spacing)
		f.polls("tenant", "new")
		f.wantRequests("too many expectations are dropped", []string{"new"}, []string{"last", "new"})
	})
}
