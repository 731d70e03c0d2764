package service

import (
	"time"

	"k8s.io/utils/clock"

	"github.com/environment-broker/environment-broker/process"
	"github.com/environment-broker/environment-broker/provisioner/agent"
	"github.com/environment-broker/environment-broker/provisioner/gardener"
	"github.com/environment-broker/environment-broker/provisioner/installation"
	"github.com/environment-broker/environment-broker/provisioner/operation"
	"github.com/environment-broker/environment-broker/provisioner/orders"
	"github.com/environment-broker/environment-broker/provisioner/processes"
	"github.com/environment-broker/environment-broker/provisioner/registration"
	"github.com/environment-broker/environment-broker/provisioner/shoot"
	"github.com/environment-broker/environment-broker/storage/runtimes"
)

// Parts are the systems and stores that the processes call. The crash matrix passes ones that fail.
type Parts struct {
	Shoots   *gardener.Client
	Clusters processes.Clusters
	Agents   agent.Clusters
	// Tokens is nil without Director.
	Tokens    agent.Tokens
	Runtimes  processes.Runtimes
	Releases  installation.Releases
	Installer installation.Installer
	Files     ShootFiles
	// Director is nil if runtimes are not registered.
	Director registration.Director
}

// statuses returns the connection status of agents, or nil without Director.
func (p Parts) statuses() orders.Agents {
	if p.Tokens == nil {
		return nil
	}

	return agent.NewStatuses(p.Agents, p.Shoots, clock.RealClock{})
}

// workPoll is the pause between two pieces of work inside a cluster.
const workPoll = 5 * time.Second

// Processes returns the processes of all kinds of operations. The crash matrix calls it with parts that inject faults.
func Processes(config Config, parts Parts) []process.Process[operation.Data] {
	provisioning, limit := config.ProvisioningTimeout, config.Engine.OperationTimeout

	agents := agent.Options{
		Clusters:             parts.Agents,
		Tokens:               parts.Tokens,
		ConfigurationTimeout: provisioning.AgentConfiguration,
		ConnectionTimeout:    provisioning.AgentConnection,
		Connected:            parts.withDirector(registration.Connected(parts.Director)),
		Limit:                limit,
	}

	return processes.Options{
		Shoots:         parts.Shoots,
		Clusters:       parts.Clusters,
		Runtimes:       parts.Runtimes,
		Releases:       parts.Releases,
		Installer:      parts.Installer,
		Build:          shootBuilder(config, parts.Files),
		Now:            clock.RealClock{}.Now,
		ServiceBrokers: config.Gardener.ClusterCleanupSelector,
		Poll:           config.Gardener.PollInterval,
		WorkPoll:       workPoll,
		Limit:          limit,
		Timeouts: processes.Timeouts{
			Domain:            provisioning.ClusterDomains,
			Creation:          provisioning.ClusterCreation,
			Refresh:           provisioning.ShootRefresh,
			Upgrade:           provisioning.ShootUpgrade,
			Hibernation:       config.HibernationTimeout.WaitingForClusterHibernation,
			Deletion:          config.DeprovisioningTimeout.WaitingForClusterDeletion,
			Bindings:          provisioning.BindingsCreation,
			InstallationStart: provisioning.InstallationTriggering,
			Installation:      provisioning.Installation,
			KymaUpgradeStart:  provisioning.UpgradeTriggering,
			KymaUpgrade:       provisioning.Upgrade,
			Cleanup:           config.DeprovisioningTimeout.ClusterCleanup,
		},
		Named:     parts.withDirector(registration.Described(parts.Director, parts.Shoots)),
		Connected: agent.Stages(agents),
		Gone:      parts.withDirector(registration.Forgotten(parts.Director)),
		Reconnect: agents,
	}.All()
}

// withDirector returns the stages, or none without Director.
func (p Parts) withDirector(stages ...process.Stage[operation.Data]) []process.Stage[operation.Data] {
	if p.Director == nil {
		return nil
	}

	return stages
}

// namespace returns the namespace of a Gardener project.
func namespace(project string) string { return "garden-" + project }

// shootBuilder returns a function that builds the Shoot of a runtime with the settings of this replica's start.
func shootBuilder(config Config, files ShootFiles) func(runtime runtimes.Runtime, operationID string) (*shoot.Objects, error) {
	options := config.Gardener.Shoots.options(config.Gardener.Project, files)

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
