package update

import (
	"context"

	"github.com/environment-broker/environment-broker/process"
)

// recordUpdate applies the change to the instance's row.
func recordUpdate(instances Instances) Step {
	return process.Action("Record_Update", "Runtime is updated", func(ctx context.Context, operation Operation) error {
		return instances.Update(ctx, operation.Record, operation.Data.Instance, *operation.Data.Update)
	})
}
