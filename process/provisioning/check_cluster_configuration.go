package provisioning

import (
	"github.com/environment-broker/environment-broker/process"
	"github.com/environment-broker/environment-broker/process/reconciling"
)

// checkClusterConfiguration waits until the Reconciler has installed Kyma. After Reconciler.Limit, the step removes the runtime
// from the Reconciler, and the operation fails.
func checkClusterConfiguration(reconciler reconciling.Reconciler) Step {
	return process.StepFunc("Check_Cluster_Configuration", reconciler.AwaitOrRemove)
}
