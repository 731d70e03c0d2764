package graph

import (
	"context"

	"github.com/environment-broker/environment-broker/provisioner/graph/model"
	"github.com/environment-broker/environment-broker/provisioner/validation"
)

// mutation resolves the fields of type Mutation.
type mutation struct {
	runtimes Runtimes
	rules    validation.Rules
}

// ProvisionRuntime checks the order and has it accepted.
func (m mutation) ProvisionRuntime(ctx context.Context, config model.ProvisionRuntimeInput) (*model.OperationStatus, error) {
	caller, err := mutatingCaller(ctx)
	if err != nil {
		return nil, err
	}

	// An order that is sent again finds its runtime, also where the rules have become stricter since.
	known, found, err := m.runtimes.Known(ctx, caller)
	if err != nil {
		return nil, explained(ctx, err)
	}

	if found {
		return withLastError(&known), nil
	}

	if err := validation.Provision(config, m.rules); err != nil {
		return nil, explained(ctx, err)
	}

	status, err := m.runtimes.Provision(ctx, caller, config)
	if err != nil {
		return nil, explained(ctx, err)
	}

	return withLastError(&status), nil
}

// UpgradeShoot has the change of a cluster accepted.
func (m mutation) UpgradeShoot(ctx context.Context, id string, config model.UpgradeShootInput) (*model.OperationStatus, error) {
	return accepted(ctx, func(caller Caller) (model.OperationStatus, error) {
		return m.runtimes.UpgradeShoot(ctx, caller, id, config)
	})
}

// HibernateRuntime has the hibernation of a cluster accepted.
func (m mutation) HibernateRuntime(ctx context.Context, id string) (*model.OperationStatus, error) {
	return accepted(ctx, func(caller Caller) (model.OperationStatus, error) { return m.runtimes.Hibernate(ctx, caller, id) })
}

// WakeUpRuntime has the waking of a cluster accepted.
func (m mutation) WakeUpRuntime(ctx context.Context, id string) (*model.OperationStatus, error) {
	return accepted(ctx, func(caller Caller) (model.OperationStatus, error) { return m.runtimes.WakeUp(ctx, caller, id) })
}

// accepted has a change of a runtime accepted on behalf of the request's caller.
func accepted(ctx context.Context, change func(caller Caller) (model.OperationStatus, error)) (*model.OperationStatus, error) {
	caller, err := mutatingCaller(ctx)
	if err != nil {
		return nil, err
	}

	status, err := change(caller)
	if err != nil {
		return nil, explained(ctx, err)
	}

	return withLastError(&status), nil
}

// DeprovisionRuntime has the removal of a runtime accepted.
func (m mutation) DeprovisionRuntime(ctx context.Context, id string) (string, error) {
	return acceptedAs(ctx, func(caller Caller) (string, error) { return m.runtimes.Deprovision(ctx, caller, id) })
}

// ReconnectRuntimeAgent has a new connection of a runtime's agent accepted.
func (m mutation) ReconnectRuntimeAgent(ctx context.Context, id string) (string, error) {
	return acceptedAs(ctx, func(caller Caller) (string, error) { return m.runtimes.ReconnectAgent(ctx, caller, id) })
}

// acceptedAs is accepted for mutations that answer with the id of the operation alone.
func acceptedAs(ctx context.Context, change func(caller Caller) (operationID string, err error)) (string, error) {
	caller, err := mutatingCaller(ctx)
	if err != nil {
		return "", err
	}

	operationID, err := change(caller)

	return operationID, explained(ctx, err)
}

// UpgradeRuntime has the change of a runtime's Kyma accepted.
func (m mutation) UpgradeRuntime(ctx context.Context, id string, config model.UpgradeRuntimeInput) (*model.OperationStatus, error) {
	return accepted(ctx, func(caller Caller) (model.OperationStatus, error) {
		return m.runtimes.UpgradeRuntime(ctx, caller, id, config)
	})
}

// RollBackUpgradeOperation has the return to a runtime's former Kyma accepted, and describes the runtime.
func (m mutation) RollBackUpgradeOperation(ctx context.Context, id string) (*model.RuntimeStatus, error) {
	caller, err := mutatingCaller(ctx)
	if err != nil {
		return nil, err
	}

	operation, err := m.runtimes.RollBackUpgrade(ctx, caller, id)
	if err != nil {
		return nil, explained(ctx, err)
	}

	status, err := m.runtimes.RuntimeStatus(ctx, caller, id, wantedFields(ctx))
	status.LastOperationStatus = &operation

	return described(ctx, status, err)
}
