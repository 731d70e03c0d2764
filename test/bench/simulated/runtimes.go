package simulated

import (
	"context"
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

// Behaviour configures how a Provisioner handles orders.
type Behaviour struct {
	// Takes is how long a runtime takes. With 0 it is ready when the order is answered.
	Takes time.Duration
	// KymaProvisioner simulates the Kyma Provisioner: it has no feed, and it ignores idempotency keys.
	KymaProvisioner bool
	// Hold delays the readiness of all runtimes until Release.
	Hold bool
	// AnswerUntil, unless 0, is the number of orders that are answered. Later orders wait for Release.
	AnswerUntil int
}

// runtimes has the ordered runtimes and implements graph.Service. Each runtime has one operation, with the same ID.
type runtimes struct {
	behaviour Behaviour
	access    *access
	calls     *counters
	released  chan struct{}

	mutex   sync.Mutex
	byKey   map[string]string
	states  map[string]process.State
	orders  map[string]time.Time
	changes []orders.Change
}

var _ graph.Service = (*runtimes)(nil)

func newRuntimes(behaviour Behaviour, access *access, calls *counters) *runtimes {
	return &runtimes{
		behaviour: behaviour, access: access, calls: calls, released: make(chan struct{}),
		byKey: map[string]string{}, states: map[string]process.State{}, orders: map[string]time.Time{},
	}
}

// Provision implements graph.Service. It records the time of an order before it answers, so that unanswered orders count.
func (r *runtimes) Provision(ctx context.Context, caller orders.Caller, order spec.Runtime) (operation.Status, error) {
	ordered := r.calls.orders.Add(1)

	r.mutex.Lock()
	if _, before := r.orders[caller.IdempotencyKey]; !before {
		r.orders[caller.IdempotencyKey] = time.Now()
	}
	r.mutex.Unlock()

	if limit := r.behaviour.AnswerUntil; limit > 0 && int(ordered) > limit {
		select {
		case <-r.released:
		case <-ctx.Done():
			return operation.Status{}, ctx.Err()
		}
	}

	r.mutex.Lock()
	id, known := r.byKey[caller.IdempotencyKey]
	earlier := r.status(id)
	r.mutex.Unlock()

	if known && !r.behaviour.KymaProvisioner {
		return earlier, nil
	}

	if err := validation.Provision(order, validation.Rules{Project: "bench"}); err != nil {
		return operation.Status{}, err
	}

	return r.accept(caller)
}

// accept creates a runtime and its operation.
func (r *runtimes) accept(caller orders.Caller) (operation.Status, error) {
	id := uuid.NewString()

	r.mutex.Lock()
	defer r.mutex.Unlock()

	r.byKey[caller.IdempotencyKey] = id
	r.change(id, process.InProgress)
	accepted := r.status(id)

	select {
	case <-r.released:
		r.change(id, process.Succeeded)

		return accepted, nil
	default:
	}

	switch {
	case r.behaviour.Hold:
	case r.behaviour.Takes == 0:
		r.change(id, process.Succeeded)
	default:
		time.AfterFunc(r.behaviour.Takes, func() {
			r.mutex.Lock()
			defer r.mutex.Unlock()
			r.change(id, process.Succeeded)
		})
	}

	return accepted, nil
}

// release makes all runtimes ready and answers all waiting orders, and all later ones at once.
func (r *runtimes) release() {
	r.mutex.Lock()
	defer r.mutex.Unlock()

	close(r.released)

	for id, state := range r.states {
		if state == process.InProgress {
			r.change(id, process.Succeeded)
		}
	}
}

// UpgradeShoot implements graph.Service. It takes as long as a creation.
func (r *runtimes) UpgradeShoot(_ context.Context, caller orders.Caller, _ string, _ spec.Upgrade) (operation.Status, error) {
	return r.accept(caller)
}

// Hibernate implements graph.Service. It takes as long as a creation.
func (r *runtimes) Hibernate(_ context.Context, caller orders.Caller, _ string) (operation.Status, error) {
	return r.accept(caller)
}

// ReconnectAgent implements graph.Service. It takes as long as a creation.
func (r *runtimes) ReconnectAgent(_ context.Context, caller orders.Caller, _ string) (string, error) {
	status, err := r.accept(caller)

	return status.ID, err
}

// WakeUp implements graph.Service. It takes as long as a creation.
func (r *runtimes) WakeUp(_ context.Context, caller orders.Caller, _ string) (operation.Status, error) {
	return r.accept(caller)
}

// UpgradeRuntime implements graph.Service.
func (*runtimes) UpgradeRuntime(context.Context, orders.Caller, string, spec.KymaUpgrade) (operation.Status, error) {
	return operation.Status{}, failure.New(failure.Invalid, "the simulated Provisioner installs no Kyma")
}

// RollBackUpgrade implements graph.Service.
func (*runtimes) RollBackUpgrade(context.Context, orders.Caller, string) (operation.Status, error) {
	return operation.Status{}, failure.New(failure.Invalid, "the simulated Provisioner installs no Kyma")
}

// Deprovision implements graph.Service.
func (*runtimes) Deprovision(context.Context, orders.Caller, string) (string, error) {
	return "", failure.New(failure.Invalid, "the simulated Provisioner removes no runtimes")
}

// RuntimeStatus implements graph.Service.
func (r *runtimes) RuntimeStatus(_ context.Context, _ orders.Caller, id string, want orders.RuntimeFields) (orders.RuntimeStatus, error) {
	r.mutex.Lock()
	last, known := r.status(id), r.states[id] != ""
	r.mutex.Unlock()

	if !known {
		return orders.RuntimeStatus{}, unknown(id)
	}

	status := orders.RuntimeStatus{Operation: &last, Connection: agent.Status{State: agent.StatusPending}}

	if want.Kubeconfig {
		r.calls.kubeconfigs.Add(1)

		kubeconfig := r.access.kubeconfig(id)
		status.Kubeconfig = &kubeconfig
	}

	return status, nil
}

// OperationStatus implements graph.Service.
func (r *runtimes) OperationStatus(_ context.Context, _ orders.Caller, id string) (operation.Status, error) {
	r.calls.statuses.Add(1)

	r.mutex.Lock()
	defer r.mutex.Unlock()

	if r.states[id] == "" {
		return operation.Status{}, unknown(id)
	}

	return r.status(id), nil
}

// status returns the operation of a runtime. The caller holds the mutex.
func (r *runtimes) status(id string) operation.Status {
	return operation.Status{
		ID: id, RuntimeID: id, Kind: operation.KindProvisionNoInstall, State: r.states[id], Message: "Shoot is being created",
	}
}

func unknown(id string) error {
	return failure.New(failure.NotFound, "there is no runtime or operation %q", id).
		WithReason(failure.ReasonNotFound, failure.ComponentProvisioner)
}
