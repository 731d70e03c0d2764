package upgradecluster

import (
	"cmp"

	"github.com/environment-broker/environment-broker/internal/environment"
	"github.com/environment-broker/environment-broker/process/upgrading"
)

// initialization reads the instance and sets the Kubernetes version that was chosen when the upgrade was accepted.
func initialization(instances upgrading.Instances) Step {
	return upgrading.Start("Upgrade_Cluster_Initialization", "The cluster is being upgraded", instances,
		func(operation Operation, update *environment.Update) error {
			upgrade := operation.Data.Upgrade
			update.Cluster.KubernetesVersion = cmp.Or(upgrade.Version, update.Cluster.KubernetesVersion)
			update.MaintenanceVersion = cmp.Or(upgrade.MaintenanceVersion, update.MaintenanceVersion)

			return nil
		})
}
