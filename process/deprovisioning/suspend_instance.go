package deprovisioning

import (
	"context"

	"github.com/environment-broker/environment-broker/process"
)

// suspendInstance records that the instance no longer has a runtime, together with the other changes of the platform's request.
func suspendInstance(instances Instances) Step {
	return process.Action("Suspend_Instance", "Instance is suspended, its runtime is removed",
		func(ctx context.Context, operation Operation) error {
			return instances.Suspend(ctx, operation.Record, operation.Data.Instance, operation.Data.Update)
		})
}
