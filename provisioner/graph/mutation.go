package graph

import (
	"context"

	"github.com/environment-broker/environment-broker/internal/objectdiff"
	"github.com/environment-broker/environment-broker/provisioner/graph/model"
	"github.com/environment-broker/environment-broker/provisioner/operation"
	"github.com/environment-broker/environment-broker/provisioner/orders"
	"github.com/environment-broker/environment-broker/provisioner/spec"
)

// mutation resolves the fields of the Mutation type. Each method reads the caller from the headers, calls the service and
// converts the result to an API type. Decisions belong in the service.
type mutation struct{ Service }

// ProvisionRuntime resolves Mutation.provisionRuntime.
func (m mutation) ProvisionRuntime(ctx context.Context, config spec.Runtime) (*model.OperationStatus, error) {
	return operationOf(ctx, func(caller orders.Caller) (operation.Status, error) { return m.Provision(ctx, caller, config) })
}

// UpgradeShoot resolves Mutation.upgradeShoot.
func (m mutation) UpgradeShoot(ctx context.Context, id string, config spec.Upgrade) (*model.OperationStatus, error) {
	return operationOf(ctx, func(caller orders.Caller) (operation.Status, error) {
		return m.Service.UpgradeShoot(ctx, caller, id, config)
	})
}

// HibernateRuntime resolves Mutation.hibernateRuntime.
func (m mutation) HibernateRuntime(ctx context.Context, id string) (*model.OperationStatus, error) {
	return operationOf(ctx, func(caller orders.Caller) (operation.Status, error) { return m.Hibernate(ctx, caller, id) })
}

// WakeUpRuntime resolves Mutation.wakeUpRuntime.
func (m mutation) WakeUpRuntime(ctx context.Context, id string) (*model.OperationStatus, error) {
	return operationOf(ctx, func(caller orders.Caller) (operation.Status, error) { return m.WakeUp(ctx, caller, id) })
}

// UpgradeRuntime resolves Mutation.upgradeRuntime.
func (m mutation) UpgradeRuntime(ctx context.Context, id string, config spec.KymaUpgrade) (*model.OperationStatus, error) {
	return operationOf(ctx, func(caller orders.Caller) (operation.Status, error) {
		return m.Service.UpgradeRuntime(ctx, caller, id, config)
	})
}

// DeprovisionRuntime resolves Mutation.deprovisionRuntime.
func (m mutation) DeprovisionRuntime(ctx context.Context, id string) (string, error) {
	return mutate(ctx, func(caller orders.Caller) (string, error) { return m.Deprovision(ctx, caller, id) })
}

// AdoptShoot resolves Mutation.adoptShoot.
func (m mutation) AdoptShoot(ctx context.Context, config orders.Adoption) (*model.AdoptedShoot, error) {
	return mutate(ctx, func(caller orders.Caller) (*model.AdoptedShoot, error) {
		adopted, err := m.Service.AdoptShoot(ctx, caller, config)
		if err != nil {
			return nil, err
		}

		shown := &model.AdoptedShoot{
			RuntimeID: adopted.RuntimeID, Generation: adopted.Generation, Earlier: adopted.Earlier, ClusterConfig: adopted.Cluster,
			Changes: []*objectdiff.Change{}, NotInOrder: append([]string{}, adopted.NotInOrder...),
		}
		for i := range adopted.Changes {
			shown.Changes = append(shown.Changes, &adopted.Changes[i])
		}

		return shown, nil
	})
}

// ReconnectRuntimeAgent resolves Mutation.reconnectRuntimeAgent.
func (m mutation) ReconnectRuntimeAgent(ctx context.Context, id string) (string, error) {
	return mutate(ctx, func(caller orders.Caller) (string, error) { return m.ReconnectAgent(ctx, caller, id) })
}

// RollBackUpgradeOperation resolves Mutation.rollBackUpgradeOperation. It returns the status of the runtime with the accepted
// operation, as Kyma Provisioner does. If the status cannot be read, the response still contains the operation.
func (m mutation) RollBackUpgradeOperation(ctx context.Context, id string, clientData *string) (*model.RuntimeStatus, error) {
	return mutate(ctx, func(caller orders.Caller) (*model.RuntimeStatus, error) {
		accepted, err := m.RollBackUpgrade(ctx, caller, id, clientData)
		if err != nil {
			return nil, err
		}

		status, err := m.RuntimeStatus(ctx, caller, id, wantedFields(ctx))
		status.Operation = &accepted

		return partial(ctx, status, err)
	})
}

// mutate reads the caller from the headers and calls the given method of the service for this caller.
func mutate[T any](ctx context.Context, call func(caller orders.Caller) (T, error)) (T, error) {
	return answered(ctx, mutatingCaller, call)
}

// operationOf calls mutate and converts the resulting operation to its API type.
func operationOf(ctx context.Context, call func(caller orders.Caller) (operation.Status, error)) (*model.OperationStatus, error) {
	return mutate(ctx, func(caller orders.Caller) (*model.OperationStatus, error) {
		status, err := call(caller)

		return operationStatus(&status), err
	})
}
