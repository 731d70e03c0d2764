package deprovisioning

import (
	"context"

	"github.com/environment-broker/environment-broker/internal/failure"
	"github.com/environment-broker/environment-broker/process"
)

// removeInstance removes the instance's row. The rows of its operations stay as a history.
func removeInstance(instances Instances) Step {
	return process.Action("Remove_Instance", "Runtime is removed", func(ctx context.Context, operation Operation) error {
		if err := instances.Delete(ctx, operation.Record, operation.Data.Instance); err != nil {
			return failure.Wrap(failure.Transient, err, "removing the instance from the database failed")
		}

		return nil
	})
}
