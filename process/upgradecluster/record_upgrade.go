package upgradecluster

import (
	"fmt"

	"github.com/environment-broker/environment-broker/process/upgrading"
)

// recordUpgrade stores the new Kubernetes version in the instance's row.
func recordUpgrade(instances upgrading.Instances) Step {
	return upgrading.Record(instances,
		func(operation Operation) string {
			return "The cluster was upgraded to Kubernetes " + operation.Data.Update.Cluster.KubernetesVersion
		},
		func(operation Operation) string {
			return fmt.Sprintf("the cluster would be upgraded from Kubernetes %s to %s",
				operation.Data.Instance.Request.Cluster.KubernetesVersion, operation.Data.Update.Cluster.KubernetesVersion)
		})
}
