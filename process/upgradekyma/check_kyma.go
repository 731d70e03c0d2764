package upgradekyma

import (
	"github.com/environment-broker/environment-broker/process"
	"github.com/environment-broker/environment-broker/process/provisionerwait"
)

// checkKyma waits until the Provisioner has upgraded Kyma.
func checkKyma(waiter provisionerwait.Waiter) Step {
	return process.StepFunc("Check_Kyma", waiter.Await)
}
