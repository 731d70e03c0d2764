package service

import (
	"k8s.io/utils/clock"

	"github.com/environment-broker/environment-broker/broker/feed"
	"github.com/environment-broker/environment-broker/broker/kyma"
	"github.com/environment-broker/environment-broker/broker/orchestration"
	"github.com/environment-broker/environment-broker/internal/clients/avs"
	"github.com/environment-broker/environment-broker/internal/clients/clusterclient"
	"github.com/environment-broker/environment-broker/internal/clients/edp"
	"github.com/environment-broker/environment-broker/internal/clients/ias"
	"github.com/environment-broker/environment-broker/internal/clients/lifecyclemanager"
	"github.com/environment-broker/environment-broker/internal/clients/provisionerclient"
	"github.com/environment-broker/environment-broker/internal/clients/reconciler"
	"github.com/environment-broker/environment-broker/internal/environment"
	"github.com/environment-broker/environment-broker/process"
	"github.com/environment-broker/environment-broker/process/binding"
	"github.com/environment-broker/environment-broker/process/deprovisioning"
	"github.com/environment-broker/environment-broker/process/kymaresource"
	"github.com/environment-broker/environment-broker/process/maintenance"
	"github.com/environment-broker/environment-broker/process/orchestrating"
	"github.com/environment-broker/environment-broker/process/provisionerwait"
	"github.com/environment-broker/environment-broker/process/provisioning"
	"github.com/environment-broker/environment-broker/process/reconciling"
	"github.com/environment-broker/environment-broker/process/update"
	"github.com/environment-broker/environment-broker/process/upgradecluster"
	"github.com/environment-broker/environment-broker/process/upgradekyma"
	"github.com/environment-broker/environment-broker/process/upgrading"
)

// Parts are the dependencies of the broker's processes. Processes access the database and other systems only
// through them. The crash tests rely on this to inject faults into writes and calls.
type Parts struct {
	Provisioner *provisionerclient.Client
	Rows        Rows
	Kyma        kyma.Kyma
	Access      RuntimeAccess
	// Objects records the objects of instances in the systems below. The client of a system that is turned off is nil.
	Objects Objects
	EDP     *edp.Client
	IAS     *ias.Client
	AvS     *avs.Client
	// LifecycleManager is nil if Lifecycle Manager is turned off.
	LifecycleManager *lifecyclemanager.Client
	// Reconciler is nil if the Reconciler is turned off.
	Reconciler *reconciler.Client
	// Accounts is the account pool, or nil if the configuration maps providers to accounts.
	Accounts Accounts
	// Notifications records messages to customers, or is nil if the notification service is turned off.
	Notifications upgrading.Notifications
	// Orchestrations conducts the orchestrations.
	Orchestrations orchestrating.Orchestrations
	// Pace returns the interval at which operations of the Provisioner are polled.
	Pace provisionerwait.Pace
	// Kind returns which kind of Provisioner the feed has detected.
	Kind func() provisionerclient.Kind
	// LeftOver, if set, is called for each runtime that may still exist after its instance was deprovisioned. The argument is the
	// reason.
	LeftOver func(deprovisioning.LeftOver)
	// FeedAlive reports whether the feed works. If it does, polls are rare and need no rate limit.
	FeedAlive func() bool
	// Polled, if set, is called before each request for the states of operations, with the number of operations.
	Polled func(operations int)
}

// Accounts assigns cloud accounts to instances. accountpool.Instances implements it.
type Accounts interface {
	provisioning.Accounts
	deprovisioning.Accounts
}

// RuntimeAccess calls the API servers of runtimes. clusterclient.Access implements it.
type RuntimeAccess interface {
	provisioning.RuntimeAccess
	deprovisioning.Runtimes
	update.RuntimeAccess
	upgradekyma.RuntimeAccess
	kymaresource.Access
	binding.Runtimes
	reconciling.Kubeconfigs
}

// Rows gives the processes access to the broker's tables. All errors carry a failure.Kind. An operation that has lost its lease
// changes nothing.
type Rows interface {
	provisioning.Instances
	deprovisioning.Instances
	deprovisioning.Provisionings
	update.Instances
	upgrading.Instances
	binding.Bindings
}

// processes returns the broker's processes. It passes them the clients and stores of the service.
func (s *Service) processes(config Config, stores stores, connected upstreams, conductor orchestration.Conductor,
	provisioner *provisionerclient.Client, access clusterclient.Access,
	follow *feed.Feed,
) []process.Process[environment.Data] {
	return Processes(config, Parts{
		Provisioner: provisioner, Rows: rows{stores, clock.RealClock{}}, Objects: NewObjects(stores.objects, clock.RealClock{}), Access: access,
		EDP: connected.edp, IAS: connected.ias, AvS: connected.avs, Reconciler: connected.reconciler,
		Kyma: connected.kyma, LifecycleManager: connected.lifecycleManager, Notifications: connected.notifications,
		Accounts: connected.pool.accounts(), Orchestrations: conductor,
		Pace: follow.Pace, Kind: follow.Kind, FeedAlive: follow.Alive,
		LeftOver: countLeftOver(s.Metrics()), Polled: countPolls(s.Metrics()),
	})
}

// Processes returns the broker's processes, one for each kind of operation. The engine cannot run an operation
// without a process of its kind. Therefore, do not remove a kind while unfinished operations of this kind can
// exist.
func Processes(config Config, parts Parts) []process.Process[environment.Data] {
	polls := countedPolls{parts.Provisioner, parts.Polled}
	waiter := provisionerwait.Waiter{
		Operations: polls,
		Poller:     provisionerwait.NewPoller(polls, config.Provisioner.PollLimit),
		FeedAlive:  parts.FeedAlive,
		Pace:       parts.Pace,
		Limit:      config.Provisioner.RuntimeTimeout,
	}

	creation, removal := creationOptions(config, parts, waiter), removalOptions(config, parts, waiter)

	upgrades := upgrading.Options{Instances: parts.Rows, Waiter: waiter, Notifications: parts.Notifications}
	if parts.AvS != nil {
		upgrades.Maintenance = maintenance.Maintenance{AvS: parts.AvS, Objects: parts.Objects}
	}

	bindings := binding.Options{Runtimes: parts.Access, Bindings: parts.Rows}

	return []process.Process[environment.Data]{
		provisioning.Process(creation),
		deprovisioning.Process(removal),
		update.Process(update.Options{
			Provisioner: parts.Provisioner, Instances: parts.Rows, Kyma: parts.Kyma, Access: parts.Access, Waiter: waiter,
			KymaResource: kymaResourceOptions(config, parts), Reconciler: reconcilingOf(config, parts), OwnClusterLimit: config.OwnClusterTimeout,
			Limit: config.Engine.OperationTimeout,
		}),
		deprovisioning.Suspension(removal),
		deprovisioning.Cleanup(removal),
		provisioning.Resumption(creation),
		upgradekyma.Process(upgradekyma.Options{
			Options: upgrades, Provisioner: parts.Provisioner, Kyma: parts.Kyma, Access: parts.Access,
			KymaResource: kymaResourceOptions(config, parts), Reconciler: reconcilingOf(config, parts),
		}),
		upgradecluster.Process(upgradecluster.Options{Options: upgrades, Provisioner: parts.Provisioner}),
		binding.Bind(bindings),
		binding.Unbind(bindings),
		orchestrating.Process(orchestrating.Options{Orchestrations: parts.Orchestrations}),
	}
}

// reconcilingOf returns the Reconciler for the processes. Its client is nil if the Reconciler is turned off.
func reconcilingOf(config Config, parts Parts) reconciling.Reconciler {
	shared := reconciling.Reconciler{
		Objects: parts.Objects, Kubeconfigs: parts.Access, ShootDomain: config.Gardener.ShootDomain, Limit: config.Reconciler.ProvisioningTimeout,
	}

	if parts.Reconciler != nil {
		shared.Client = parts.Reconciler
	}

	return shared
}

// creationOptions returns the dependencies of the processes that create runtimes. The client of a system that is turned off is
// nil.
func creationOptions(config Config, parts Parts, waiter provisionerwait.Waiter) provisioning.Options {
	options := provisioning.Options{
		Provisioner: parts.Provisioner,
		Instances:   parts.Rows,
		Accounts:    provisioning.StaticAccounts(config.TargetSecrets),
		Kyma:        parts.Kyma,
		Access:      parts.Access,
		Waiter:      waiter,
		Objects:     parts.Objects,
		Clusters:    parts.Provisioner,
		Kind:        parts.Kind,
		Limit:       config.Engine.OperationTimeout,
		Installer:   config.Kyma.Installer,
		Reconciler:  reconcilingOf(config, parts),

		KymaResource:    kymaResourceOptions(config, parts),
		OwnClusterLimit: config.OwnClusterTimeout,
	}

	if parts.Accounts != nil {
		options.Accounts = parts.Accounts
	}

	if parts.EDP != nil {
		options.EDP, options.EDPRequired = parts.EDP, config.EDP.Required
	}

	if config.DirectorDashboard {
		options.Consoles = parts.Provisioner
	}

	if parts.AvS != nil {
		options.Monitoring = provisioning.Monitoring{
			AvS: parts.AvS, Internal: !config.AvS.Internal.Disabled, External: !config.AvS.External.Disabled, Tags: config.AvS.Tags.Enabled,
			ShootDomain: config.Gardener.ShootDomain,
		}
	}

	return options
}

// kymaResourceOptions returns the dependencies of the steps that use Lifecycle Manager.
func kymaResourceOptions(config Config, parts Parts) kymaresource.Options {
	options := kymaresource.Options{
		Kyma: parts.Kyma, Access: parts.Access, Records: parts.Objects, Limit: config.LifecycleManager.ReadyTimeout,
	}
	if parts.LifecycleManager != nil {
		options.Client = parts.LifecycleManager
	}

	return options
}

// removalOptions returns the dependencies of the processes that remove runtimes. The client of a system that is turned off is
// nil.
func removalOptions(config Config, parts Parts, waiter provisionerwait.Waiter) deprovisioning.Options {
	options := deprovisioning.Options{
		Provisioner:   parts.Provisioner,
		Instances:     parts.Rows,
		Provisionings: parts.Rows,
		Runtimes:      parts.Access,
		Waiter:        waiter,
		Objects:       parts.Objects,
		Kind:          parts.Kind,
		LeftOver:      parts.LeftOver,
		Limit:         config.Engine.OperationTimeout,
	}

	if parts.Accounts != nil {
		options.Accounts = parts.Accounts
	}

	if parts.EDP != nil {
		options.EDP = parts.EDP
	}

	if parts.IAS != nil {
		options.IAS = parts.IAS
	}

	if parts.AvS != nil {
		options.AvS = parts.AvS
	}

	if parts.LifecycleManager != nil {
		options.LifecycleManager = parts.LifecycleManager
	}

	if parts.Reconciler != nil {
		options.Reconciler = parts.Reconciler
	}

	return options
}
