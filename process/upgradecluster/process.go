package upgradecluster

import (
	"context"

	"github.com/environment-broker/environment-broker/internal/environment"
	"github.com/environment-broker/environment-broker/internal/provisionerclient"
	"github.com/environment-broker/environment-broker/process"
	"github.com/environment-broker/environment-broker/process/provisionerwait"
	"github.com/environment-broker/environment-broker/process/upgrading"
)

// Operation is the input and the result of the steps.
type Operation = upgrading.Operation

// Step is a step of the process.
type Step = upgrading.Step

// Provisioner changes runtimes.
type Provisioner interface {
	UpgradeRuntime(ctx context.Context, caller provisionerclient.Caller, instance, changed environment.Instance) (provisionerclient.Operation, error)
}

// Options are the dependencies of the process.
type Options struct {
	Provisioner Provisioner
	Instances   upgrading.Instances
	Waiter      provisionerwait.Waiter
	// Maintenance is nil if AvS is switched off.
	Maintenance upgrading.Maintenance
}

// Process returns the process that upgrades a cluster.
func Process(options Options) process.Process[environment.Data] {
	retry, noDryRun := process.DefaultRetry(), upgrading.NoDryRun()
	monitored := upgrading.Monitored(options.Maintenance)
	preemptible := func(step Step) Step { return upgrading.Preemptible(options.Instances, step) }

	return process.Process[environment.Data]{
		Kind:  environment.KindUpgradeCluster,
		Limit: upgrading.Limit,
		Stages: []process.Stage[environment.Data]{
			{Name: "upgrade", Retry: retry, Steps: []process.Task[environment.Data]{
				{Step: initialization(options.Instances)},
				{
					Step: preemptible(upgrading.BeginMaintenance(options.Maintenance)), When: monitored, Skippable: true,
					Notes: upgrading.MaintenanceNotes(),
				},
				{Step: preemptible(upgradeCluster(options.Provisioner, options.Waiter)), When: noDryRun, Notes: process.Notes{System: "Provisioner"}},
			}},
			{Name: "check", Retry: retry, RetryFrom: "upgrade", Steps: []process.Task[environment.Data]{{
				Step: preemptible(checkRuntime(options.Waiter)), When: noDryRun,
				Notes: process.Notes{System: "Provisioner", Limit: min(options.Waiter.Limit, upgrading.Limit)},
			}}},
			{Name: "restore", Retry: retry, Steps: []process.Task[environment.Data]{
				{Step: upgrading.EndMaintenance(options.Maintenance), When: monitored, Skippable: true, Notes: upgrading.MaintenanceNotes()},
			}},
			{Name: "record", Retry: retry, Steps: process.Steps(recordUpgrade(options.Instances))},
		},
	}
}
