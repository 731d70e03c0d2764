package upgradecluster

import (
	"context"

	"github.com/environment-broker/environment-broker/internal/clients/provisionerclient"
	"github.com/environment-broker/environment-broker/internal/environment"
	"github.com/environment-broker/environment-broker/process"
	"github.com/environment-broker/environment-broker/process/upgrading"
)

// Operation is the input and the result of the steps.
type Operation = upgrading.Operation

// Step is a step of the process. Its data is environment.Data.
type Step = upgrading.Step

// Provisioner changes runtimes.
type Provisioner interface {
	UpgradeRuntime(ctx context.Context, caller provisionerclient.Caller, instance, changed environment.Instance) (provisionerclient.Operation, error)
}

// Options are the dependencies of the process.
type Options struct {
	upgrading.Options

	Provisioner Provisioner
}

// Process returns the process that upgrades a cluster.
func Process(options Options) process.Process[environment.Data] {
	return options.Process(environment.KindUpgradeCluster, upgrading.Tasks{
		Order: []process.Task[environment.Data]{
			{
				Step:  initialization(options.Instances),
				Notes: process.Notes{Does: "Reads the instance, and sets the Kubernetes version that was chosen for the upgrade."},
			},
			options.BeginMaintenance(),
			options.SendNotification(),
			{
				Step: options.Preemptible(upgradeCluster(options.Provisioner, options.Waiter)), When: upgrading.NoDryRun(),
				Notes: process.Notes{Does: "Orders the upgrade of the cluster.", System: "Provisioner"},
			},
		},
		Check: []process.Task[environment.Data]{
			options.Check("Check_Runtime", "Waits until the Provisioner has upgraded the cluster."),
		},
		Record: process.Task[environment.Data]{
			Step: recordUpgrade(options.Instances), Notes: process.Notes{Does: "Stores the new Kubernetes version in the instance."},
		},
	})
}
