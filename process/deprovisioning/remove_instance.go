package deprovisioning

import (
	"github.com/environment-broker/environment-broker/internal/environment"
	"github.com/environment-broker/environment-broker/process"
)

// removeInstance removes the instance's row. The rows of its operations stay as history. If steps were not completed, the
// instance becomes a leftover, but users see it as deleted.
func removeInstance(instances Instances) Step {
	return process.Final[environment.Data]("Remove_Instance", "Runtime was removed",
		func(operation Operation) process.Effect {
			return instances.Delete(operation.Record, operation.Data.Instance, notCompleted(operation))
		})
}
