package deprovisioning

import (
	"github.com/environment-broker/environment-broker/internal/environment"
	"github.com/environment-broker/environment-broker/process"
)

// suspendInstance records that the instance no longer has a runtime, together with the other changes of the platform's request.
func suspendInstance(instances Instances) Step {
	return process.Final[environment.Data]("Suspend_Instance", "Instance is suspended; its runtime was removed",
		func(operation Operation) process.Effect {
			return instances.Suspend(operation.Record, operation.Data.Instance, operation.Data.Update, runtimeNotRemoved(operation))
		})
}
