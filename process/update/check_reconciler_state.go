package update

import (
	"github.com/environment-broker/environment-broker/process"
	"github.com/environment-broker/environment-broker/process/reconciling"
)

// checkReconcilerState waits until the Reconciler has changed Kyma.
func checkReconcilerState(reconciler reconciling.Reconciler) Step {
	return process.StepFunc("CheckReconcilerState", reconciler.Await)
}
