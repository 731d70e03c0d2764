package provisioning

import (
	"github.com/environment-broker/environment-broker/internal/environment"
	"github.com/environment-broker/environment-broker/process"
)

// resumeInstance records that the instance has a runtime again.
func resumeInstance(instances Instances) Step {
	return process.Final[environment.Data]("Resume_Instance", "Instance was resumed; its runtime is ready",
		func(operation Operation) process.Effect { return instances.Resume(operation.Data.Instance) })
}
