package upgradecluster

import (
	"github.com/environment-broker/environment-broker/process"
	"github.com/environment-broker/environment-broker/process/provisionerwait"
)

// checkRuntime waits until the Provisioner has changed the cluster.
func checkRuntime(waiter provisionerwait.Waiter) Step {
	return process.StepFunc("Check_Runtime", waiter.Await)
}
