package update

import (
	"github.com/environment-broker/environment-broker/internal/environment"
	"github.com/environment-broker/environment-broker/process"
)

// recordUpdate applies the change to the instance's row.
func recordUpdate(instances Instances) Step {
	return process.Final[environment.Data]("Record_Update", "Runtime was updated", func(operation Operation) process.Effect {
		return instances.Update(operation.Data.Instance, *operation.Data.Update)
	})
}
