package upgradekyma

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

// Provisioner changes the Kyma of runtimes.
type Provisioner interface {
	UpgradeKyma(ctx context.Context, caller provisionerclient.Caller, changed environment.Instance) (provisionerclient.Operation, error)
}

// Kyma decides which Kyma the runtime of an instance gets.
type Kyma interface {
	// Complete returns the Kyma of the instance with its version, unless it is set, and its installation, or nil without Kyma.
	Complete(ctx context.Context, instance environment.Instance) (*environment.Kyma, error)
	// Overrides returns the completed Kyma of the instance with the values that operators have set.
	Overrides(ctx context.Context, instance environment.Instance) (*environment.Kyma, error)
}

// RuntimeAccess checks whether an instance's runtime responds.
type RuntimeAccess interface {
	Probe(ctx context.Context, instance environment.Instance) error
}

// Options are the dependencies of the process.
type Options struct {
	Provisioner Provisioner
	Instances   upgrading.Instances
	Kyma        Kyma
	Access      RuntimeAccess
	Waiter      provisionerwait.Waiter
	// Maintenance is nil if AvS is switched off.
	Maintenance upgrading.Maintenance
}

// Process returns the process that upgrades Kyma. The version and the overrides are chosen in the stage that sends the order,
// because overrides can be secret and are never stored.
func Process(options Options) process.Process[environment.Data] {
	retry, noDryRun := process.DefaultRetry(), upgrading.NoDryRun()
	monitored := upgrading.Monitored(options.Maintenance)
	preemptible := func(step Step) Step { return upgrading.Preemptible(options.Instances, step) }

	return process.Process[environment.Data]{
		Kind:  environment.KindUpgradeKyma,
		Limit: upgrading.Limit,
		Stages: []process.Stage[environment.Data]{
			{Name: "upgrade", Retry: retry, Steps: []process.Task[environment.Data]{
				{Step: initialization(options.Instances, options.Kyma), Notes: process.Notes{System: "control plane"}},
				{Step: preemptible(getKubeconfig(options.Access)), When: noDryRun, Skippable: true, Notes: process.Notes{System: "runtime"}},
				{
					Step: preemptible(upgrading.BeginMaintenance(options.Maintenance)), When: monitored, Skippable: true,
					Notes: upgrading.MaintenanceNotes(),
				},
				{Step: preemptible(overrides(options.Kyma)), When: noDryRun, Notes: process.Notes{System: "control plane"}},
				{Step: preemptible(btpOperatorOverrides()), When: noDryRun},
				{Step: preemptible(upgradeKyma(options.Provisioner, options.Waiter)), When: noDryRun, Notes: process.Notes{System: "Provisioner"}},
			}},
			{Name: "check", Retry: retry, RetryFrom: "upgrade", Steps: []process.Task[environment.Data]{{
				Step: preemptible(checkKyma(options.Waiter)), When: noDryRun,
				Notes: process.Notes{System: "Provisioner", Limit: min(options.Waiter.Limit, upgrading.Limit)},
			}}},
			{Name: "restore", Retry: retry, Steps: []process.Task[environment.Data]{
				{Step: upgrading.EndMaintenance(options.Maintenance), When: monitored, Skippable: true, Notes: upgrading.MaintenanceNotes()},
			}},
			{Name: "record", Retry: retry, Steps: process.Steps(recordUpgrade(options.Instances))},
		},
	}
}
