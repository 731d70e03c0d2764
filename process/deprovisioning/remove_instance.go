package deprovisioning

import (
	"github.com/environment-broker/environment-broker/internal/environment"
	"github.com/environment-broker/environment-broker/process"
)

// removeInstance removes the instance's row. The rows of its operations stay as a history.
func removeInstance(instances Instances) Step {
	return process.Final[environment.Data]("Remove_Instance", "Runtime is removed",
		func(operation Operation) process.Effect { return instances.Delete(operation.Data.Instance) })
}
