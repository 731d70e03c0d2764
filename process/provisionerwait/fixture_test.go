package provisionerwait_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/environment-broker/environment-broker/internal/clients/provisionerclient"
	"github.com/environment-broker/environment-broker/process/provisionerwait"
)

// Copies of the package's constants, so that an accidental change fails the tests.
const (
	most        = 50
	spacing     = 50 * time.Millisecond
	leadShare   = 4
	lateness    = 2 * time.Second
	forgetAfter = time.Minute
	maxPolls    = 50_000
	singleFor   = 5 * time.Minute
)

// request is a request that a Poller has sent.
type request struct {
	at     time.Time
	tenant string
	ids    []string
	// canceled is why the request ended early, or nil.
	canceled error
}

// statuses records the requests of a Poller and responds with unfinished operations.
type statuses struct {
	// takes is how long a request takes.
	takes time.Duration
	// answer, if set, overrides the result of an operation in a request for count operations.
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

// fixture is a Poller in fake time.
type fixture struct {
	*testing.T
	*statuses

	poller *provisionerwait.Poller
	start  time.Time
}

func onFakeTime(t *testing.T, perSecond int, test func(f fixture)) {
	t.Helper()

	synctest.Test(t, func(t *testing.T) {
		requests := &statuses{}
		test(fixture{T: t, statuses: requests, poller: provisionerwait.NewPoller(requests, perSecond), start: time.Now()})
	})
}

// polls calls Poll once and returns how long the operation has to wait before it may poll again.
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
