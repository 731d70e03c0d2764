package simulated

import (
	"context"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/environment-broker/environment-broker/internal/failure"
	"github.com/environment-broker/environment-broker/provisioner/graph"
	"github.com/environment-broker/environment-broker/provisioner/graph/model"
)

// Behaviour is how a Provisioner treats orders.
type Behaviour struct {
	// Takes is how long a runtime takes. With 0 it is ready when the order is answered.
	Takes time.Duration
	// Former has no feed of changes, as the Provisioner of the former system.
	Former bool
	// Hold keeps every runtime from getting ready until Release.
	Hold bool
	// AnswerUntil, unless 0, keeps the orders that come after so many without an answer until Release.
	AnswerUntil int
}

// runtimes are the runtimes that were ordered. They implement graph.Runtimes, each with one operation that has the runtime's id.
type runtimes struct {
	behaviour Behaviour
	access    *access
	calls     *counters
	released  chan struct{}

	mutex   sync.Mutex
	byKey   map[string]string
	states  map[string]model.OperationState
	orders  map[string]time.Time
	changes []model.OperationChange
}

var _ graph.Runtimes = (*runtimes)(nil)

func newRuntimes(behaviour Behaviour, access *access, calls *counters) *runtimes {
	return &runtimes{
		behaviour: behaviour, access: access, calls: calls, released: make(chan struct{}),
		byKey: map[string]string{}, states: map[string]model.OperationState{}, orders: map[string]time.Time{},
	}
}

// Known implements graph.Runtimes.
func (r *runtimes) Known(ctx context.Context, caller graph.Caller) (model.OperationStatus, bool, error) {
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
			return model.OperationStatus{}, false, ctx.Err()
		}
	}

	r.mutex.Lock()
	defer r.mutex.Unlock()

	id, known := r.byKey[caller.IdempotencyKey]
	if r.behaviour.Former || !known {
		return model.OperationStatus{}, false, nil
	}

	return r.status(id), true, nil
}

// Provision implements graph.Runtimes.
func (r *runtimes) Provision(_ context.Context, caller graph.Caller, _ model.ProvisionRuntimeInput) (model.OperationStatus, error) {
	id := uuid.NewString()

	r.mutex.Lock()
	defer r.mutex.Unlock()

	r.byKey[caller.IdempotencyKey] = id
	r.change(id, model.OperationStateInProgress)
	accepted := r.status(id)

	select {
	case <-r.released:
		r.change(id, model.OperationStateSucceeded)

		return accepted, nil
	default:
	}

	switch {
	case r.behaviour.Hold:
	case r.behaviour.Takes == 0:
		r.change(id, model.OperationStateSucceeded)
	default:
		time.AfterFunc(r.behaviour.Takes, func() {
			r.mutex.Lock()
			defer r.mutex.Unlock()
			r.change(id, model.OperationStateSucceeded)
		})
	}

	return accepted, nil
}

// release has every runtime be ready, and answers every order.
func (r *runtimes) release() {
	r.mutex.Lock()
	defer r.mutex.Unlock()

	close(r.released)

	for id, state := range r.states {
		if state == model.OperationStateInProgress {
			r.change(id, model.OperationStateSucceeded)
		}
	}
}

// UpgradeShoot implements graph.Runtimes. An upgrade takes what a creation takes.
func (r *runtimes) UpgradeShoot(ctx context.Context, caller graph.Caller, _ string, _ model.UpgradeShootInput) (model.OperationStatus, error) {
	return r.Provision(ctx, caller, model.ProvisionRuntimeInput{})
}

// Hibernate implements graph.Runtimes. It takes what a creation takes.
func (r *runtimes) Hibernate(ctx context.Context, caller graph.Caller, _ string) (model.OperationStatus, error) {
	return r.Provision(ctx, caller, model.ProvisionRuntimeInput{})
}

// ReconnectAgent implements graph.Runtimes. It takes what a creation takes.
func (r *runtimes) ReconnectAgent(ctx context.Context, caller graph.Caller, _ string) (string, error) {
	status, err := r.Provision(ctx, caller, model.ProvisionRuntimeInput{})

	return *status.ID, err
}

// WakeUp implements graph.Runtimes. It takes what a creation takes.
func (r *runtimes) WakeUp(ctx context.Context, caller graph.Caller, _ string) (model.OperationStatus, error) {
	return r.Provision(ctx, caller, model.ProvisionRuntimeInput{})
}

// UpgradeRuntime implements graph.Runtimes.
func (*runtimes) UpgradeRuntime(context.Context, graph.Caller, string, model.UpgradeRuntimeInput) (model.OperationStatus, error) {
	return model.OperationStatus{}, failure.New(failure.Invalid, "the simulated Provisioner installs no Kyma")
}

// RollBackUpgrade implements graph.Runtimes.
func (*runtimes) RollBackUpgrade(context.Context, graph.Caller, string) (model.OperationStatus, error) {
	return model.OperationStatus{}, failure.New(failure.Invalid, "the simulated Provisioner installs no Kyma")
}

// Deprovision implements graph.Runtimes.
func (*runtimes) Deprovision(context.Context, graph.Caller, string) (string, error) {
	return "", failure.New(failure.Invalid, "the simulated Provisioner removes no runtimes")
}

// RuntimeStatus implements graph.Runtimes.
func (r *runtimes) RuntimeStatus(_ context.Context, _ graph.Caller, id string, want graph.RuntimeFields) (model.RuntimeStatus, error) {
	r.mutex.Lock()
	last, known := r.status(id), r.states[id] != ""
	r.mutex.Unlock()

	if !known {
		return model.RuntimeStatus{}, unknown(id)
	}

	told := model.RuntimeStatus{LastOperationStatus: &last, RuntimeConfiguration: &model.RuntimeConfig{}}

	if want.Kubeconfig {
		r.calls.kubeconfigs.Add(1)

		kubeconfig := r.access.kubeconfig(id)
		told.RuntimeConfiguration.Kubeconfig = &kubeconfig
	}

	return told, nil
}

// OperationStatus implements graph.Runtimes.
func (r *runtimes) OperationStatus(_ context.Context, _ graph.Caller, id string) (model.OperationStatus, error) {
	r.calls.statuses.Add(1)

	r.mutex.Lock()
	defer r.mutex.Unlock()

	if r.states[id] == "" {
		return model.OperationStatus{}, unknown(id)
	}

	return r.status(id), nil
}

func (r *runtimes) status(id string) model.OperationStatus {
	message := "Shoot is being created"

	return model.OperationStatus{
		ID: &id, RuntimeID: &id, Operation: model.OperationTypeProvisionNoInstall, State: r.states[id], Message: &message,
	}
}

func unknown(id string) error {
	return failure.New(failure.NotFound, "there is no runtime or operation %q", id).
		WithReason(failure.ReasonNotFound, failure.ComponentProvisioner)
}
