package service

import (
	"time"

	"k8s.io/utils/clock"

	"github.com/environment-broker/environment-broker/process"
	"github.com/environment-broker/environment-broker/provisioner/administrators"
	"github.com/environment-broker/environment-broker/provisioner/agent"
	"github.com/environment-broker/environment-broker/provisioner/clusterupdate"
	"github.com/environment-broker/environment-broker/provisioner/deprovisioning"
	"github.com/environment-broker/environment-broker/provisioner/gardener"
	"github.com/environment-broker/environment-broker/provisioner/installation"
	"github.com/environment-broker/environment-broker/provisioner/kyma"
	"github.com/environment-broker/environment-broker/provisioner/operation"
	"github.com/environment-broker/environment-broker/provisioner/orders"
	"github.com/environment-broker/environment-broker/provisioner/provisioning"
	"github.com/environment-broker/environment-broker/provisioner/registration"
	"github.com/environment-broker/environment-broker/provisioner/shoot"
	"github.com/environment-broker/environment-broker/storage/runtimes"
)

// Parts are what the processes reach the outside by.
type Parts struct {
	Shoots   *gardener.Client
	Clusters interface {
		administrators.Clusters
		deprovisioning.Clusters
	}
	Agents agent.Clusters
	// Tokens is nil without Director.
	Tokens   agent.Tokens
	Runtimes interface {
		clusterupdate.Runtimes
		deprovisioning.Runtimes
	}
	Releases  installation.Releases
	Installer installation.Installer
	Landscape Landscape
	// Director is nil when runtimes are not registered.
	Director registration.Director
}

// statuses tell how agents are connected. Without Director there are none, for no agent is.
func (p Parts) statuses() orders.Agents {
	if p.Tokens == nil {
		return nil
	}

	return agent.NewStatuses(p.Agents, p.Shoots, clock.RealClock{})
}

// installationPoll is how long it takes from one piece of work in a cluster to the next.
const installationPoll = 5 * time.Second

// Processes are what the Provisioner does with runtimes. Every kind of operation is registered here, and reaches the outside only by
// what is handed in: the crash matrix hands in what goes wrong.
func Processes(config Config, parts Parts) []process.Process[operation.Data] {
	poll, limit := config.Gardener.PollInterval, config.Engine.OperationTimeout

	build := shootBuilder(config, parts.Landscape)

	changes := clusterupdate.Options{
		Shoots:             parts.Shoots,
		Build:              build,
		Clusters:           parts.Clusters,
		Runtimes:           parts.Runtimes,
		RefreshTimeout:     config.ProvisioningTimeout.ShootRefresh,
		UpgradeTimeout:     config.ProvisioningTimeout.ShootUpgrade,
		HibernationTimeout: config.HibernationTimeout.WaitingForClusterHibernation,
		BindingsTimeout:    config.ProvisioningTimeout.BindingsCreation,
		Poll:               poll,
		Limit:              limit,
	}

	creation := provisioning.Options{
		Shoots:          parts.Shoots,
		Build:           build,
		Clusters:        parts.Clusters,
		DomainTimeout:   config.ProvisioningTimeout.ClusterDomains,
		CreationTimeout: config.ProvisioningTimeout.ClusterCreation,
		BindingsTimeout: config.ProvisioningTimeout.BindingsCreation,
		OnceNamed:       parts.withDirector(registration.Described(parts.Director, parts.Shoots)),
		Poll:            poll,
		Limit:           limit,
	}

	removal := deprovisioning.Options{
		Shoots:          parts.Shoots,
		Runtimes:        parts.Runtimes,
		Now:             clock.RealClock{}.Now,
		DeletionTimeout: config.DeprovisioningTimeout.WaitingForClusterDeletion,
		OnceGone:        parts.withDirector(registration.Forgotten(parts.Director)),
		Poll:            poll,
		Limit:           limit,
	}

	installing := kyma.Options{
		Releases: parts.Releases, Installer: parts.Installer, Clusters: parts.Clusters, Poll: installationPoll,
		StartTimeout: config.ProvisioningTimeout.InstallationTriggering, Timeout: config.ProvisioningTimeout.Installation,
	}

	upgrading := installing
	upgrading.StartTimeout, upgrading.Timeout = config.ProvisioningTimeout.UpgradeTriggering, config.ProvisioningTimeout.Upgrade

	agents := agent.Options{
		Clusters:             parts.Agents,
		Tokens:               parts.Tokens,
		ConfigurationTimeout: config.ProvisioningTimeout.AgentConfiguration,
		ConnectionTimeout:    config.ProvisioningTimeout.AgentConnection,
		Connected:            parts.withDirector(registration.Connected(parts.Director)),
		Limit:                limit,
	}

	return []process.Process[operation.Data]{
		provisioning.Process(creation),
		provisioning.WithKyma(creation, installing, agent.Stages(agents)...),
		clusterupdate.Upgrade(changes),
		clusterupdate.Hibernate(changes),
		clusterupdate.WakeUp(changes),
		agent.Reconnect(agents),
		clusterupdate.UpgradeKyma(changes, upgrading),
		clusterupdate.RollBackKyma(changes, upgrading),
		deprovisioning.Process(removal),
		deprovisioning.WithKyma(removal, deprovisioning.Kyma{
			Clusters: parts.Clusters, Installer: parts.Installer, ServiceBrokers: config.Gardener.ClusterCleanupSelector,
			CleanupTimeout: config.DeprovisioningTimeout.ClusterCleanup, Poll: installationPoll,
		}),
	}
}

// withDirector leaves out the stages where there is no Director.
func (p Parts) withDirector(stages ...process.Stage[operation.Data]) []process.Stage[operation.Data] {
	if p.Director == nil {
		return nil
	}

	return stages
}

// namespace is the project's namespace in Gardener.
func namespace(project string) string { return "garden-" + project }

// shootBuilder makes the Shoots of the landscape.
func shootBuilder(config Config, landscape Landscape) func(runtime runtimes.Runtime, operationID string) (*shoot.Objects, error) {
	options := config.Gardener.Shoots.options(config.Gardener.Project, landscape)

	return func(runtime runtimes.Runtime, operationID string) (*shoot.Objects, error) {
		order, err := operation.OrderOf(runtime)
		if err != nil {
			return nil, err
		}

		return shoot.Build(shoot.Runtime{
			ID:          runtime.ID,
			OperationID: operationID,
			Tenant:      runtime.Tenant,
			SubAccount:  runtime.SubAccount,
			Config:      order.ClusterConfig.GardenerConfig,
		}, options)
	}
}
