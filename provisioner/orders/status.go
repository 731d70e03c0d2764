package orders

import (
	"context"
	"errors"

	"github.com/environment-broker/environment-broker/internal/failure"
	"github.com/environment-broker/environment-broker/provisioner/agent"
	"github.com/environment-broker/environment-broker/provisioner/operation"
	"github.com/environment-broker/environment-broker/provisioner/spec"
	"github.com/environment-broker/environment-broker/storage"
)

// RuntimeFields select the parts of a RuntimeStatus that cost a call to another system.
type RuntimeFields struct {
	ClusterConfig    bool
	Kubeconfig       bool
	ConnectionStatus bool
	Hibernation      bool
}

// RuntimeStatus is a runtime as clients see it. Parts that were not selected, or could not be read, have their zero value.
type RuntimeStatus struct {
	// Operation is the newest operation.
	Operation  *operation.Status
	Connection agent.Status
	Cluster    *spec.Cluster
	// Kyma has no secret values.
	Kyma        *spec.Kyma
	Hibernation *Hibernation
	Kubeconfig  *string
}

// Hibernation reports whether a cluster is hibernated, and whether it could be.
type Hibernation struct {
	Hibernated, Possible bool
}

// OperationStatus returns the status of an operation on a runtime of the caller's tenant, or failure.NotFound. Operations of
// removed runtimes remain readable.
func (s *Service) OperationStatus(ctx context.Context, caller Caller, operationID string) (operation.Status, error) {
	record, err := s.Operations.Get(ctx, s.Operations.Reader(), operationID)
	if errors.Is(err, storage.ErrNotFound) {
		return operation.Status{}, unknown("operation", operationID)
	}

	if err != nil {
		return operation.Status{}, unavailable(err)
	}

	if _, err := s.owned(ctx, s.Runtimes.Reader(), caller.Tenant, record.InstanceID); err != nil {
		if failure.Is(err, failure.NotFound) {
			return operation.Status{}, unknown("operation", operationID)
		}

		return operation.Status{}, err
	}

	return operation.StatusOf(record), nil
}

// RuntimeStatus returns the status of a runtime. If another system does not answer, it returns the error and the other parts.
// Parts that need the cluster are omitted until it was created. A kubeconfig is only returned if the audit log has recorded it.
func (s *Service) RuntimeStatus(ctx context.Context, caller Caller, runtimeID string, want RuntimeFields) (RuntimeStatus, error) {
	runtime, err := s.owned(ctx, s.Runtimes.Reader(), caller.Tenant, runtimeID)
	if err != nil {
		return RuntimeStatus{}, err
	}

	past, err := s.Operations.OfInstance(ctx, s.Operations.Reader(), runtimeID)
	if err != nil {
		return RuntimeStatus{}, unavailable(err)
	}

	status := RuntimeStatus{Connection: agent.Status{State: agent.StatusPending}}

	if len(past) > 0 {
		last := operation.StatusOf(past[0])
		status.Operation = &last
	}

	order, err := operation.OrderOf(runtime)
	if err != nil {
		return status, err
	}

	status.Cluster, status.Kyma = order.ClusterConfig.GardenerConfig, order.KymaConfig.WithoutSecrets()

	if !hasCluster(runtime, past) {
		return status, nil
	}

	if want.ConnectionStatus && s.Agents != nil {
		status.Connection = s.Agents.Status(ctx, runtime)
	}

	if want.Hibernation {
		if status.Hibernation, err = s.hibernation(ctx, runtime.ShootName); err != nil {
			return status, err
		}
	}

	if want.Kubeconfig {
		kubeconfig, err := s.Kubeconfigs.AdminKubeconfig(ctx, runtime.ShootName, s.KubeconfigValidity)
		if err != nil {
			return status, err
		}

		if err := s.recordKubeconfig(ctx, runtime); err != nil {
			return status, err
		}

		status.Kubeconfig = new(string(kubeconfig))
	}

	return status, nil
}
