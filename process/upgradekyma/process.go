package upgradekyma

import (
	"cmp"
	"context"
	"slices"

	"github.com/environment-broker/environment-broker/internal/clients/provisionerclient"
	"github.com/environment-broker/environment-broker/internal/environment"
	"github.com/environment-broker/environment-broker/process"
	"github.com/environment-broker/environment-broker/process/kymachange"
	"github.com/environment-broker/environment-broker/process/kymaresource"
	"github.com/environment-broker/environment-broker/process/reconciling"
	"github.com/environment-broker/environment-broker/process/upgrading"
)

// Operation is the input and the result of the steps.
type Operation = upgrading.Operation

// Step is a step of the process. Its data is environment.Data.
type Step = upgrading.Step

// Provisioner changes the Kyma installations of runtimes.
type Provisioner interface {
	UpgradeKyma(ctx context.Context, caller provisionerclient.Caller, changed environment.Instance) (provisionerclient.Operation, error)
	RollBackKyma(ctx context.Context, caller provisionerclient.Caller, changed environment.Instance) (provisionerclient.Operation, error)
}

// RuntimeAccess checks whether an instance's runtime responds.
type RuntimeAccess interface {
	Probe(ctx context.Context, instance environment.Instance) error
}

// Options are the dependencies of the process.
type Options struct {
	upgrading.Options

	Provisioner Provisioner
	Kyma        kymachange.Kyma
	Access      RuntimeAccess
	// KymaResource has the dependencies of the Lifecycle Manager steps. Process sets its Instance field.
	KymaResource kymaresource.Options
	Reconciler   reconciling.Reconciler
}

// Process returns the process that upgrades Kyma. The version and the overrides are chosen in the stage that sends the order,
// because overrides can be secret and are never stored.
func Process(options Options) process.Process[environment.Data] {
	noDryRun := upgrading.NoDryRun()
	byManager := installedBy("Lifecycle Manager", environment.InstallerLifecycleManager)
	byReconciler := installedBy("the Reconciler", environment.InstallerReconciler)
	byProvisioner := installedBy("the Provisioner", environment.InstallerProvisioner)
	overridden := upgrades(installedBy("the Provisioner or the Reconciler", environment.InstallerProvisioner, environment.InstallerReconciler))
	kyma := options.KymaResource
	kyma.Instance = func(_ context.Context, operation Operation) (environment.Instance, error) {
		return operation.Data.Changed()
	}

	check := options.Check("Check_Kyma", "Waits until the Provisioner has changed Kyma.")
	check.When = byProvisioner

	return options.Process(environment.KindUpgradeKyma, upgrading.Tasks{
		Order: []process.Task[environment.Data]{
			{
				Step:  initialization(options.Instances, options.Kyma),
				Notes: process.Notes{Does: "Chooses the version and the components of Kyma.", System: kymaresource.System},
			},
			{
				Step: options.Preemptible(getKubeconfig(options.Access)), When: noDryRun, Skippable: true,
				Notes: process.Notes{Does: "Checks that the runtime responds to its kubeconfig.", System: "runtime"},
			},
			options.BeginMaintenance(),
			{
				Step: options.Preemptible(kymachange.BTPOperatorOverrides()), When: kymachange.WithCredentials(overridden),
				Notes: kymachange.CredentialsNotes(),
			},
			{Step: options.Preemptible(kymachange.Overrides(options.Kyma)), When: overridden, Notes: kymachange.OverridesNotes()},
			{Step: options.Preemptible(kymachange.BusolaMigratorOverrides()), When: overridden, Notes: kymachange.BusolaNotes()},
			options.SendNotification(),
			{
				Step: options.Preemptible(upgradeKyma(options.Provisioner, options.Waiter)), When: upgrades(byProvisioner),
				Notes: process.Notes{Does: "Orders the installation of the chosen version of Kyma.", System: "Provisioner"},
			},
			{
				Step: options.Preemptible(rollBackKyma(options.Provisioner, options.Waiter)), When: rollsBack(byProvisioner),
				Notes: process.Notes{Does: "Orders the version of Kyma that the last upgrade replaced.", System: "Provisioner"},
			},
			{
				Step: options.Preemptible(kymachange.ApplyConfiguration("Apply_Cluster_Configuration", options.Reconciler)), When: byReconciler,
				Notes: kymachange.ConfigurationNotes(),
			},
			{Step: options.Preemptible(kymaresource.SyncKubeconfig(kyma)), When: byManager, Notes: kymaresource.SyncNotes()},
			{Step: options.Preemptible(kymaresource.ApplyKyma(kyma)), When: byManager, Notes: kymaresource.ApplyNotes()},
		},
		Check: []process.Task[environment.Data]{
			check,
			{
				Step: options.Preemptible(process.StepFunc("Check_Cluster_Configuration", options.Reconciler.Await)), When: byReconciler,
				Notes: process.Notes{
					Does: "Waits until the Reconciler has changed Kyma.", System: reconciling.System, Limit: options.Reconciler.Limit,
				},
			},
			{Step: options.Preemptible(kymaresource.CheckKyma(kyma)), When: byManager, Notes: kyma.CheckNotes()},
		},
		Record: process.Task[environment.Data]{
			Step: recordUpgrade(options.Instances), Notes: process.Notes{Does: "Stores the new configuration of Kyma in the instance."},
		},
	})
}

// upgrades restricts a condition to operations that are not rollbacks.
func upgrades(condition process.Condition[environment.Data]) process.Condition[environment.Data] {
	holds := condition.Holds
	condition.Text += ", no rollback"
	condition.Holds = func(operation Operation) bool { return holds(operation) && operation.Data.Upgrade.RollsBack == "" }

	return condition
}

// rollsBack restricts a condition to rollbacks.
func rollsBack(condition process.Condition[environment.Data]) process.Condition[environment.Data] {
	holds := condition.Holds
	condition.Text += ", a rollback"
	condition.Holds = func(operation Operation) bool { return holds(operation) && operation.Data.Upgrade.RollsBack != "" }

	return condition
}

// installedBy returns the condition that one of the given installers has installed Kyma. If an upgrade is preempted before it has
// read the instance, the installer is unknown. The Provisioner's steps then run, but do nothing.
func installedBy(title string, installers ...environment.KymaInstaller) process.Condition[environment.Data] {
	noDryRun := upgrading.NoDryRun()

	return process.Condition[environment.Data]{
		Text: noDryRun.Text + ", " + title + " installs Kyma",
		Holds: func(operation Operation) bool {
			installer := environment.InstallerProvisioner
			if kyma := operation.Data.Instance.Request.Cluster.Kyma; kyma != nil {
				installer = cmp.Or(kyma.Installer, installer)
			}

			return noDryRun.Holds(operation) && slices.Contains(installers, installer)
		},
	}
}
