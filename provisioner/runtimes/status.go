package runtimes

import (
	"cmp"
	"context"
	"errors"

	"github.com/environment-broker/environment-broker/internal/failure"
	"github.com/environment-broker/environment-broker/process"
	"github.com/environment-broker/environment-broker/provisioner/graph"
	"github.com/environment-broker/environment-broker/provisioner/graph/model"
	"github.com/environment-broker/environment-broker/provisioner/operation"
	"github.com/environment-broker/environment-broker/storage"
	"github.com/environment-broker/environment-broker/storage/runtimes"
)

// OperationStatus implements graph.Runtimes.
func (s *Service) OperationStatus(ctx context.Context, caller graph.Caller, operationID string) (model.OperationStatus, error) {
	record, err := s.Operations.Get(ctx, s.Operations.Reader(), operationID)
	if errors.Is(err, storage.ErrNotFound) {
		return model.OperationStatus{}, unknown("operation", operationID)
	}

	if err != nil {
		return model.OperationStatus{}, unavailable(err)
	}

	if _, err := s.owned(ctx, s.Runtimes.Reader(), caller.Tenant, record.InstanceID); err != nil {
		if failure.Is(err, failure.NotFound) {
			return model.OperationStatus{}, unknown("operation", operationID)
		}

		return model.OperationStatus{}, err
	}

	return status(record), nil
}

// RuntimeStatus implements graph.Runtimes. Gardener is asked only for what is wanted of it; when that fails, the rest is told beside
// the error.
func (s *Service) RuntimeStatus(ctx context.Context, caller graph.Caller, runtimeID string, want graph.RuntimeFields,
) (model.RuntimeStatus, error) {
	runtime, err := s.owned(ctx, s.Runtimes.Reader(), caller.Tenant, runtimeID)
	if err != nil {
		return model.RuntimeStatus{}, err
	}

	past, err := s.Operations.OfInstance(ctx, s.Operations.Reader(), runtimeID)
	if err != nil {
		return model.RuntimeStatus{}, unavailable(err)
	}

	told := model.RuntimeStatus{
		RuntimeConnectionStatus: &model.RuntimeConnectionStatus{Status: model.RuntimeAgentConnectionStatusPending},
		RuntimeConfiguration:    &model.RuntimeConfig{},
	}

	if len(past) > 0 {
		last := status(past[0])
		told.LastOperationStatus = &last
	}

	order, err := operation.OrderOf(runtime)
	if err != nil {
		return told, err
	}

	told.RuntimeConfiguration.ClusterConfig = model.ConfigOf(order.ClusterConfig.GardenerConfig)
	told.RuntimeConfiguration.KymaConfig = model.KymaConfigOf(order.KymaConfig)

	if want.ConnectionStatus && s.Agents != nil && hasCluster(runtime, past) {
		told.RuntimeConnectionStatus = s.Agents.Status(ctx, runtime)
	}

	if want.Hibernation && hasCluster(runtime, past) {
		if told.HibernationStatus, err = s.hibernation(ctx, runtime.ShootName); err != nil {
			return told, err
		}
	}

	if want.Kubeconfig && hasCluster(runtime, past) {
		kubeconfig, err := s.Kubeconfigs.AdminKubeconfig(ctx, runtime.ShootName, s.KubeconfigValidity)
		if err != nil {
			return told, err
		}

		if err := s.handedOut(ctx, runtime); err != nil {
			return told, err
		}

		text := string(kubeconfig)
		told.RuntimeConfiguration.Kubeconfig = &text
	}

	return told, nil
}

// hasCluster reports whether the runtime's cluster was made and is not gone.
func hasCluster(runtime runtimes.Runtime, past []process.Record) bool {
	if !runtime.DeletedAt.IsZero() {
		return false
	}

	for _, record := range past {
		if operation.Provisions(record.Kind) && record.State == process.Succeeded {
			return true
		}
	}

	return false
}

// status tells an operation in the words of the API.
func status(record process.Record) model.OperationStatus {
	message := record.Problem.Message

	if message == "" {
		switch record.State {
		case process.Succeeded:
			message = "Operation succeeded"
		case process.Pending:
			message = "Operation accepted"
		default:
			message = "Operation in progress. Stage " + cmp.Or(record.Stage, "not begun")
			if record.Progress != "" {
				message += ": " + record.Progress
			}
		}
	}

	problem := record.Problem
	if record.State == process.Canceled {
		problem = process.Problem{
			Message: "canceled: the runtime is to be deprovisioned", Reason: "canceled", Component: failure.ComponentProvisioner,
		}
		message = problem.Message
	}

	return model.OperationStatus{
		ID:        &record.ID,
		Operation: typeOf(record.Kind),
		State:     state(record.State),
		Message:   &message,
		RuntimeID: &record.InstanceID,
		LastError: &model.LastError{ErrMessage: problem.Message, Reason: problem.Reason, Component: problem.Component},
	}
}

// typeOf tells a kind in the words of the API.
func typeOf(kind string) model.OperationType {
	switch kind {
	case operation.KindWakeUp:
		return model.OperationTypeUpgradeShoot
	case operation.KindRollBack:
		return model.OperationTypeUpgrade
	default:
		return model.OperationType(kind)
	}
}

// state tells a state in the words of the API.
func state(state process.State) model.OperationState {
	switch state {
	case process.Pending:
		return model.OperationStatePending
	case process.InProgress, process.Canceling:
		return model.OperationStateInProgress
	case process.Succeeded:
		return model.OperationStateSucceeded
	case process.Failed, process.Canceled:
	}

	return model.OperationStateFailed
}
