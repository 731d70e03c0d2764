package orders

import (
	"context"
	"errors"
	"slices"

	"github.com/environment-broker/environment-broker/internal/failure"
	"github.com/environment-broker/environment-broker/process"
	"github.com/environment-broker/environment-broker/provisioner/agent"
	"github.com/environment-broker/environment-broker/provisioner/operation"
	"github.com/environment-broker/environment-broker/provisioner/spec"
	"github.com/environment-broker/environment-broker/storage"
)

// RuntimeFields selects the parts of a RuntimeStatus that need a call to Gardener, to Director or to the cluster.
type RuntimeFields struct {
	Kubeconfig       bool
	ConnectionStatus bool
	Hibernation      bool
	Maintenance      bool
	Console          bool
}

// RuntimeStatus is a runtime as clients see it. Parts that were not selected or could not be read are zero.
type RuntimeStatus struct {
	// Operation is the newest operation. It is nil only if the method that returned the status also returned an error.
	Operation *operation.Status
	// Connection is the status of the runtime agent. It is pending if the request did not select it.
	Connection agent.Status
	// Cluster is the order for the cluster. An upgrade is visible only after it has succeeded.
	Cluster *spec.Cluster
	// Kyma is the order for Kyma without secret values, or nil for a cluster without Kyma.
	Kyma        *spec.Kyma
	Hibernation *Hibernation
	// Maintenance is the maintenance window of the Shoot, or nil if the Shoot has none.
	Maintenance *MaintenanceWindow
	// Console is the address of the runtime's console, or empty.
	Console string
	// Kubeconfig is a new admin kubeconfig, or nil if the request did not select it.
	Kubeconfig *string
}

// Hibernation reports whether a cluster is hibernated, and whether it can be hibernated now.
type Hibernation struct {
	Hibernated, Possible bool
}

// MaintenanceWindow is the daily period in which Gardener updates a cluster. Begin and End are times of day with a UTC offset,
// such as 220000+0100.
type MaintenanceWindow struct {
	Begin, End string
}

// OperationStatus returns the status of an operation on a runtime of the caller's tenant, even after the runtime was removed.
// The error is failure.NotFound for an unknown operation and for an operation of another tenant.
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

// maxErrors is the maximum number of errors that OperationErrors returns.
const maxErrors = 20

// OperationErrors returns the messages of the failed attempts in the timeline of an operation, oldest first. If a message occurs
// several times, only its last occurrence is returned. The result contains at most maxErrors messages, the newest ones. It does
// not check who owns the operation.
func (s *Service) OperationErrors(ctx context.Context, operationID string) ([]string, error) {
	timeline, err := s.Operations.Timeline(ctx, operationID)
	if err != nil {
		return nil, unavailable(err)
	}

	failed := []process.Outcome{process.Retrying, process.StepFailed, process.NotCompleted, process.OperationFailed}
	messages := []string{}

	for _, entry := range slices.Backward(timeline) {
		if entry.Message != "" && slices.Contains(failed, entry.Outcome) && !slices.Contains(messages, entry.Message) && len(messages) < maxErrors {
			messages = append(messages, entry.Message)
		}
	}

	slices.Reverse(messages)

	return messages, nil
}

// RuntimeStatus returns the status of a runtime with the selected parts. If a system does not respond, RuntimeStatus returns the
// error together with the parts that it has read. Parts that require a cluster are missing if the cluster does not exist.
// RuntimeStatus returns a kubeconfig only after recording it in the audit log.
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

	if err := s.addShoot(ctx, runtime.ShootName, want, &status); err != nil {
		return status, err
	}

	if want.Console && s.Consoles != nil {
		if status.Console, err = s.Consoles.Console(ctx, runtime.Account(), runtimeID); err != nil {
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
