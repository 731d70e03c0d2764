package simulated

import (
	"context"
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/environment-broker/environment-broker/internal/failure"
	"github.com/environment-broker/environment-broker/process"
	"github.com/environment-broker/environment-broker/provisioner/agent"
	"github.com/environment-broker/environment-broker/provisioner/graph"
	"github.com/environment-broker/environment-broker/provisioner/operation"
	"github.com/environment-broker/environment-broker/provisioner/orders"
	"github.com/environment-broker/environment-broker/provisioner/spec"
	"github.com/environment-broker/environment-broker/provisioner/validation"
)

// The poll interval of the feed and the maximum number of changes per page. Both are the same as in the real Provisioner.
const (
	feedPause = 250 * time.Millisecond
	feedPage  = 500
)

// service implements the part of graph.Service that the benchmarks need. Each runtime has one operation, with the same ID.
type service struct {
	graph.Service // nil: calls to other methods panic, and the GraphQL server returns internal errors

	kubeconfig func(id string) string
	// released is closed by release. Orders that get no immediate response wait until then.
	released chan struct{}

	// mutex guards the fields below.
	mutex sync.Mutex
	// behaviour defines how the service responds now. release sets its delays to zero.
	behaviour Behaviour
	calls     Calls
	// byKey maps idempotency keys to IDs of runtimes.
	byKey  map[string]string
	states map[string]process.State
	// arrivals maps idempotency keys to the time when the order first arrived.
	arrivals map[string]time.Time
	// changes contains all changes since the start. The cursors of the feed are indexes into this slice.
	changes []orders.Change
}

// count updates the call counts.
func (s *service) count(change func(calls *Calls)) {
	s.mutex.Lock()
	defer s.mutex.Unlock()

	change(&s.calls)
}

// release ends all delays. It must be called once.
func (s *service) release() {
	s.mutex.Lock()
	defer s.mutex.Unlock()

	close(s.released)

	s.behaviour = Behaviour{KymaProvisioner: s.behaviour.KymaProvisioner}

	for id, state := range s.states {
		if state == process.InProgress {
			s.change(id, process.Succeeded)
		}
	}
}

// change sets the state of an operation and adds the change to the feed. The caller must hold the mutex.
func (s *service) change(id string, state process.State) {
	s.states[id] = state
	s.changes = append(s.changes, orders.Change{ID: id, RuntimeID: id, Kind: operation.KindProvisionNoInstall, State: state})
}

// Provision implements graph.Service. A repeated order with the same idempotency key returns the first runtime.
func (s *service) Provision(ctx context.Context, caller orders.Caller, order spec.Runtime) (operation.Status, error) {
	if !s.arrive(caller.IdempotencyKey) {
		select {
		case <-s.released:
		case <-ctx.Done():
			return operation.Status{}, ctx.Err()
		}
	}

	if err := validation.Provision(order, validation.Rules{Project: "bench"}); err != nil {
		return operation.Status{}, err
	}

	s.mutex.Lock()
	defer s.mutex.Unlock()

	if id, known := s.byKey[caller.IdempotencyKey]; known && !s.behaviour.KymaProvisioner {
		return s.status(id), nil
	}

	id := uuid.NewString()
	s.byKey[caller.IdempotencyKey] = id
	s.change(id, process.InProgress)
	accepted := s.status(id)

	switch {
	case s.behaviour.Hold:
	case s.behaviour.Takes > 0:
		time.AfterFunc(s.behaviour.Takes, func() {
			s.mutex.Lock()
			defer s.mutex.Unlock()
			s.change(id, process.Succeeded)
		})
	default:
		s.change(id, process.Succeeded)
	}

	return accepted, nil
}

// UpgradeShoot implements graph.Service. The change succeeds immediately, even for a runtime that exists only in the broker's database.
func (s *service) UpgradeShoot(_ context.Context, _ orders.Caller, runtimeID string, _ spec.Upgrade) (operation.Status, error) {
	s.mutex.Lock()
	defer s.mutex.Unlock()

	id := uuid.NewString()
	s.change(id, process.Succeeded)

	status := s.status(id)
	status.RuntimeID, status.Kind = runtimeID, operation.KindUpgradeShoot

	return status, nil
}

// arrive records an order and reports whether the order gets a response before the release.
func (s *service) arrive(key string) bool {
	s.mutex.Lock()
	defer s.mutex.Unlock()

	s.calls.Orders++

	if _, repeated := s.arrivals[key]; !repeated {
		s.arrivals[key] = time.Now()
	}

	return s.behaviour.AnswerUntil == 0 || s.calls.Orders <= s.behaviour.AnswerUntil
}

// RuntimeStatus implements graph.Service.
func (s *service) RuntimeStatus(_ context.Context, _ orders.Caller, id string, want orders.RuntimeFields) (orders.RuntimeStatus, error) {
	s.mutex.Lock()
	defer s.mutex.Unlock()

	if s.states[id] == "" {
		return orders.RuntimeStatus{}, unknown(id)
	}

	last := s.status(id)
	status := orders.RuntimeStatus{
		Operation: &last, Connection: agent.Status{State: agent.StatusPending},
		Cluster: &spec.Cluster{
			Name: "shoot", Provider: "aws", Region: "eu-central-1", Seed: new("seed"),
			ProviderSpecificConfig: &spec.Provider{AWSConfig: &spec.AWS{}},
		},
	}

	if want.Kubeconfig {
		s.calls.Kubeconfigs++
		status.Kubeconfig = new(s.kubeconfig(id))
	}

	return status, nil
}

// polledKey is the context key of a *bool that reports whether Calls.Statuses already includes the request.
type polledKey struct{}

// withPolled adds the *bool for polledKey to the context of each request.
func withPolled(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		next.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), polledKey{}, new(bool))))
	})
}

// OperationStatus implements graph.Service. It is called for each operation of a request.
func (s *service) OperationStatus(ctx context.Context, _ orders.Caller, id string) (operation.Status, error) {
	s.mutex.Lock()
	defer s.mutex.Unlock()

	if done, _ := ctx.Value(polledKey{}).(*bool); !*done {
		*done = true
		s.calls.Statuses++
	}

	s.calls.Polled++

	if s.states[id] == "" {
		return operation.Status{}, unknown(id)
	}

	return s.status(id), nil
}

// status returns the status of the operation that creates a runtime. The caller must hold the mutex.
func (s *service) status(id string) operation.Status {
	return operation.Status{
		ID: id, RuntimeID: id, Kind: operation.KindProvisionNoInstall, State: s.states[id], Message: "Shoot is being created",
	}
}

// unknown returns the Provisioner's error for an unknown ID. The broker recognizes the error by its reason.
func unknown(id string) error {
	return failure.New(failure.NotFound, "there is no runtime or operation %q", id).
		WithReason(failure.ReasonNotFound, failure.ComponentProvisioner)
}

// Changes implements graph.Service. A cursor is the number of changes reported so far. If KymaProvisioner is set, Changes returns
// the error of a GraphQL server whose schema lacks the field.
func (s *service) Changes(ctx context.Context, after string, wait time.Duration) (string, []orders.Change, error) {
	s.count(func(calls *Calls) { calls.Feeds++ })

	deadline := time.Now().Add(wait)

	for {
		next, changes, err := s.changesAfter(after)
		if err != nil || after == "" || len(changes) > 0 || !time.Now().Before(deadline) {
			return next, changes, err
		}

		select {
		case <-ctx.Done():
			return after, nil, nil
		case <-time.After(feedPause):
		}
	}
}

// changesAfter returns a page of changes and the cursor after the page. Several changes of one operation become one change with
// the current state. If the cursor is empty, changesAfter returns no changes and a cursor after the newest change.
func (s *service) changesAfter(after string) (string, []orders.Change, error) {
	s.mutex.Lock()
	defer s.mutex.Unlock()

	if s.behaviour.KymaProvisioner {
		return "", nil, failure.New(failure.Invalid, `Cannot query field "operationChanges" on type "Query".`)
	}

	if after == "" {
		return strconv.Itoa(len(s.changes)), nil, nil
	}

	reported, err := strconv.Atoi(after)
	if err != nil || reported > len(s.changes) {
		return "", nil, failure.New(failure.Invalid, "after: not a cursor")
	}

	next := min(reported+feedPage, len(s.changes))
	seen := map[string]bool{}

	var changes []orders.Change

	for _, change := range s.changes[reported:next] {
		if !seen[change.ID] {
			seen[change.ID] = true
			change.State = s.states[change.ID]
			changes = append(changes, change)
		}
	}

	s.calls.Changes += len(changes)

	return strconv.Itoa(next), changes, nil
}
