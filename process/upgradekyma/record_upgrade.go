package upgradekyma

import (
	"cmp"
	"fmt"

	"github.com/environment-broker/environment-broker/process/upgrading"
)

// recordUpgrade stores the new Kyma version in the instance's row.
func recordUpgrade(instances upgrading.Instances) Step {
	return upgrading.Record(instances,
		func(operation Operation) string {
			if operation.Data.Instance.InLifecycleManager() {
				return "The Kyma resource was applied"
			}

			if operation.Data.Upgrade.RollsBack != "" {
				return "Kyma was rolled back to " + operation.Data.Update.Cluster.Kyma.Version
			}

			return "Kyma was upgraded to " + operation.Data.Update.Cluster.Kyma.Version
		},
		func(operation Operation) string {
			if operation.Data.Instance.InLifecycleManager() {
				return "the Kyma resource would be applied with the channel and the template of the plan"
			}

			return fmt.Sprintf("Kyma would be upgraded from %s to %s", operation.Data.Instance.Request.Cluster.Kyma.Version,
				cmp.Or(operation.Data.Upgrade.Version, "the account's version or the default version"))
		})
}
