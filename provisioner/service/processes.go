package service

import (
	"context"
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

// Parts are the systems and stores that the processes call. Processes make no other calls, so the crash matrix test can make any
// call fail.
type Parts struct {
	// Shoots is the client of the Gardener project.
	Shoots *gardener.Client
	// Clusters changes objects inside the clusters of runtimes.
	Clusters processes.Clusters
	// Agents configures the runtime agents inside the clusters.
	Agents agent.Clusters
	// Tokens issues the one-time tokens of runtime agents. It is nil if Director is disabled.
	Tokens agent.Tokens
	// Runtimes records the results of operations.
	Runtimes processes.Runtimes
	// Releases plans installations of Kyma, and Installer carries them out.
	Releases  installation.Releases
	Installer installation.Installer
	// ForgetBundles removes a runtime from the bundle provisioner. It is nil if there is no bundle provisioner.
	ForgetBundles func(ctx context.Context, runtimeID string) (installation.Progress, error)
	// Files are the Shoot settings that the replica has read from files at startup.
	Files ShootFiles
	// Director registers runtimes. It is nil if Director is disabled.
	Director registration.Director
	// Record returns the record of a runtime, which an annotation of its Shoot contains. If Record is nil, Shoots have no
	// records.
	Record func(runtimes.Runtime) (string, error)
	// Traceparent returns an operation's traceparent, which an annotation of the Shoot contains. If Traceparent is nil, Shoots
	// have no such annotation.
	Traceparent func(process.Record) string
}

// statuses returns the reader of the agents' connection status, or nil if Director is disabled. It returns a nil interface and
// not a nil pointer, because package orders compares the value with nil.
func (p Parts) statuses() orders.Agents {
	if p.Tokens == nil {
		return nil
	}

	return agent.NewStatuses(p.Agents, p.Shoots, clock.RealClock{})
}

// workPoll is the pause between two units of work inside a cluster, such as the installation of a component.
const workPoll = 5 * time.Second

// Processes returns the processes for all kinds of operations. It does not call any of the parts, so zero Parts are enough to
// list the names of stages and steps, except those for Director, the runtime agent and the bundle provisioner. The crash matrix
// test passes parts that inject faults.
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
		ForgetBundles:  parts.ForgetBundles,
		Build:          shootBuilder(config, parts.Files, parts.Record),
		Traceparent:    parts.Traceparent,
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

// withDirector returns the stages if runtimes are registered in Director, and nil otherwise.
func (p Parts) withDirector(stages ...process.Stage[operation.Data]) []process.Stage[operation.Data] {
	if p.Director == nil {
		return nil
	}

	return stages
}

// namespace returns the namespace of a Gardener project in the garden. The prefix is Gardener's convention.
func namespace(project string) string { return "garden-" + project }

// shootBuilder returns a function that builds the Shoot of a runtime and the objects that the Shoot refers to. It uses the
// settings that the replica read at startup, so replicas with different settings build different Shoots. If record is nil, the
// Shoots have no records.
func shootBuilder(config Config, files ShootFiles, record func(runtimes.Runtime) (string, error),
) func(runtime runtimes.Runtime, operationID string) (*shoot.Objects, error) {
	options := config.Gardener.Shoots.options(config.Gardener.Project, files)

	return func(runtime runtimes.Runtime, operationID string) (*shoot.Objects, error) {
		order, err := operation.OrderOf(runtime)
		if err != nil {
			return nil, err
		}

		var sealed string

		if record != nil {
			if sealed, err = record(runtime); err != nil {
				return nil, err
			}
		}

		return shoot.Build(shoot.Runtime{
			ID:          runtime.ID,
			OperationID: operationID,
			Tenant:      runtime.Tenant,
			SubAccount:  runtime.SubAccount,

			OriginalTenant:     runtime.OriginalTenant,
			OriginalSubAccount: runtime.OriginalSubAccount,

			Record:     sealed,
			InstanceID: order.InstanceID(),

			Config: order.ClusterConfig.GardenerConfig,
		}, options)
	}
}
