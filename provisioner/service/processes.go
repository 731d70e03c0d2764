package service

import (
	"encoding/json"

	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	"k8s.io/utils/clock"

	"github.com/environment-broker/environment-broker/internal/failure"
	"github.com/environment-broker/environment-broker/process"
	"github.com/environment-broker/environment-broker/provisioner/deprovisioning"
	"github.com/environment-broker/environment-broker/provisioner/gardener"
	"github.com/environment-broker/environment-broker/provisioner/graph/model"
	"github.com/environment-broker/environment-broker/provisioner/operation"
	"github.com/environment-broker/environment-broker/provisioner/provisioning"
	"github.com/environment-broker/environment-broker/provisioner/shoot"
	stored "github.com/environment-broker/environment-broker/storage/runtimes"
)

// Processes are what the Provisioner does with runtimes. Every kind of operation is registered here, and reaches the outside only by
// what is handed in: the crash matrix hands in what goes wrong.
func Processes(config Config, shoots *gardener.Client, runtimes deprovisioning.Runtimes) []process.Process[operation.Data] {
	return []process.Process[operation.Data]{
		provisioning.Process(provisioning.Options{
			Shoots:          shoots,
			Build:           shootBuilder(config),
			DomainTimeout:   config.ProvisioningTimeout.ClusterDomains,
			CreationTimeout: config.ProvisioningTimeout.ClusterCreation,
			Poll:            config.Gardener.PollInterval,
			Limit:           config.Engine.OperationTimeout,
		}),
		deprovisioning.Process(deprovisioning.Options{
			Shoots:          shoots,
			Runtimes:        runtimes,
			Now:             clock.RealClock{}.Now,
			DeletionTimeout: config.DeprovisioningTimeout.WaitingForClusterDeletion,
			Poll:            config.Gardener.PollInterval,
			Limit:           config.Engine.OperationTimeout,
		}),
	}
}

// namespace is the project's namespace in Gardener.
func namespace(project string) string { return "garden-" + project }

// shootBuilder makes the Shoots of the landscape.
func shootBuilder(config Config) provisioning.BuildShoot {
	options := shoot.Options{
		Namespace:            namespace(config.Gardener.Project),
		AuditPolicyConfigMap: config.Gardener.AuditLogsPolicyConfigMap,
	}

	return func(runtime stored.Runtime, operationID string) (*gardencorev1beta1.Shoot, error) {
		var input model.ProvisionRuntimeInput
		if err := json.Unmarshal(runtime.Configuration, &input); err != nil {
			return nil, failure.Wrap(failure.Internal, err, "the configuration of the runtime cannot be read")
		}

		return shoot.Build(shoot.Runtime{
			ID:          runtime.ID,
			OperationID: operationID,
			Tenant:      runtime.Tenant,
			SubAccount:  runtime.SubAccount,
			Config:      input.ClusterConfig.GardenerConfig,
		}, options)
	}
}
