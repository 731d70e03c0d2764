package service

import (
	"github.com/environment-broker/environment-broker/broker/kyma"
	"github.com/environment-broker/environment-broker/internal/avs"
	"github.com/environment-broker/environment-broker/internal/edp"
	"github.com/environment-broker/environment-broker/internal/environment"
	"github.com/environment-broker/environment-broker/internal/ias"
	"github.com/environment-broker/environment-broker/internal/provisionerclient"
	"github.com/environment-broker/environment-broker/process"
	"github.com/environment-broker/environment-broker/process/binding"
	"github.com/environment-broker/environment-broker/process/deprovisioning"
	"github.com/environment-broker/environment-broker/process/maintenance"
	"github.com/environment-broker/environment-broker/process/provisionerwait"
	"github.com/environment-broker/environment-broker/process/provisioning"
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
	// Objects records the objects of instances in the upstreams below, which are nil if they are switched off.
	Objects Objects
	EDP     *edp.Client
	IAS     *ias.Client
	AvS     *avs.Client
	// Accounts is the account pool, or nil if the configuration maps providers to accounts.
	Accounts Accounts
	// Pace returns the interval at which operations of the Provisioner are polled.
	Pace provisionerwait.Pace
	// Kind returns the kind of the Provisioner that the feed has detected.
	Kind func() provisionerclient.Kind
	// LeftOver, if set, is called with the reason for each runtime that may still exist after its instance's deprovisioning.
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
	binding.Runtimes
}

// Rows gives the processes access to the broker's tables. All errors are of package failure. An operation that has
// lost its lease changes nothing.
type Rows interface {
	provisioning.Instances
	deprovisioning.Instances
	deprovisioning.Provisionings
	update.Instances
	upgrading.Instances
	binding.Bindings
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

	var maintained upgrading.Maintenance
	if parts.AvS != nil {
		maintained = maintenance.Maintenance{AvS: parts.AvS, Objects: parts.Objects}
	}

	bindings := binding.Options{Runtimes: parts.Access, Bindings: parts.Rows}

	return []process.Process[environment.Data]{
		provisioning.Process(creation),
		deprovisioning.Process(removal),
		update.Process(update.Options{
			Provisioner: parts.Provisioner, Instances: parts.Rows, Kyma: parts.Kyma, Access: parts.Access, Waiter: waiter,
			Limit: config.Engine.OperationTimeout,
		}),
		deprovisioning.Suspension(removal),
		deprovisioning.Cleanup(removal),
		provisioning.Resumption(creation),
		upgradekyma.Process(upgradekyma.Options{
			Provisioner: parts.Provisioner, Instances: parts.Rows, Kyma: parts.Kyma, Access: parts.Access, Waiter: waiter,
			Maintenance: maintained,
		}),
		upgradecluster.Process(upgradecluster.Options{
			Provisioner: parts.Provisioner, Instances: parts.Rows, Waiter: waiter, Maintenance: maintained,
		}),
		binding.Bind(bindings),
		binding.Unbind(bindings),
	}
}

// creationOptions returns the dependencies of the processes that create runtimes. A system that is switched off is nil.
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

// removalOptions returns the dependencies of the processes that remove runtimes. A system that is switched off is nil.
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

	return options
}
