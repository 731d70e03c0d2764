package graph

import (
	"context"

	"k8s.io/utils/ptr"

	"github.com/environment-broker/environment-broker/process"
	"github.com/environment-broker/environment-broker/provisioner/graph/model"
	"github.com/environment-broker/environment-broker/provisioner/operation"
	"github.com/environment-broker/environment-broker/provisioner/orders"
	"github.com/environment-broker/environment-broker/provisioner/spec"
)

// operationStatus converts an operation to its API type, and nil to nil. lastError is never null, because clients of Kyma
// Provisioner do not expect null.
func operationStatus(status *operation.Status) *model.OperationStatus {
	if status == nil {
		return nil
	}

	return &model.OperationStatus{
		ID:        &status.ID,
		RuntimeID: &status.RuntimeID,
		Operation: model.OperationType(status.Kind),
		State:     stateOf(status.State),
		Message:   &status.Message,
		LastError: &model.LastError{
			ErrMessage: status.Problem.ForOperators(), Reason: status.Problem.Reason, Component: status.Problem.Component,
		},
	}
}

// stateOf maps an engine state to one of the API's four states.
func stateOf(state process.State) model.OperationState {
	switch operation.PublicState(state) {
	case process.Pending:
		return model.OperationStatePending
	case process.Succeeded:
		return model.OperationStateSucceeded
	case process.Failed:
		return model.OperationStateFailed
	default:
		return model.OperationStateInProgress
	}
}

// runtimeStatus converts a runtime to its API type. oidcConfig is never null, because clients of Kyma Provisioner do not expect
// null.
func runtimeStatus(status orders.RuntimeStatus) *model.RuntimeStatus {
	connection := &model.RuntimeConnectionStatus{Status: model.RuntimeAgentConnectionStatus(status.Connection.State)}
	for _, problem := range status.Connection.Problems {
		connection.Errors = append(connection.Errors, &model.Error{Message: &problem})
	}

	shown := &model.RuntimeStatus{
		LastOperationStatus:     operationStatus(status.Operation),
		RuntimeConnectionStatus: connection,
		RuntimeConfiguration: &model.RuntimeConfig{
			ClusterConfig: status.Cluster, KymaConfig: status.Kyma, Kubeconfig: status.Kubeconfig,
		},
	}

	if status.Cluster != nil && status.Cluster.OIDCConfig == nil {
		cluster := *status.Cluster
		cluster.OIDCConfig = &spec.OIDC{SigningAlgs: []string{}}
		shown.RuntimeConfiguration.ClusterConfig = &cluster
	}

	if status.Console != "" {
		shown.ConsoleURL = &status.Console
	}

	if status.Maintenance != nil {
		shown.MaintenanceWindow = &model.MaintenanceWindow{Begin: status.Maintenance.Begin, End: status.Maintenance.End}
	}

	if status.Hibernation != nil {
		shown.HibernationStatus = &model.HibernationStatus{
			Hibernated: &status.Hibernation.Hibernated, HibernationPossible: &status.Hibernation.Possible,
		}
	}

	return shown
}

// cluster resolves the fields of the GardenerConfig type that spec.Cluster does not have.
type cluster struct{}

// ProviderSpecificConfig resolves GardenerConfig.providerSpecificConfig. The field is a union, and gqlgen selects the member by
// its Go type. Values that the schema requires but the order omits are empty.
func (cluster) ProviderSpecificConfig(_ context.Context, config *spec.Cluster) (model.ProviderSpecificConfig, error) {
	provider := config.ProviderSpecificConfig

	switch {
	case provider == nil:
		return nil, nil
	case provider.AWSConfig != nil:
		shown := *provider.AWSConfig
		if shown.AWSZones == nil {
			shown.AWSZones = []*spec.AWSZone{}
		}

		return shown, nil
	case provider.AzureConfig != nil:
		return *provider.AzureConfig, nil
	case provider.GCPConfig != nil:
		return *provider.GCPConfig, nil
	case provider.OpenStackConfig != nil:
		shown := *provider.OpenStackConfig
		shown.FloatingPoolName = new(ptr.Deref(shown.FloatingPoolName, ""))
		shown.CloudProfileName = new(ptr.Deref(shown.CloudProfileName, ""))

		return shown, nil
	}

	return nil, nil
}
