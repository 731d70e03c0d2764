package provisioning

import (
	"context"

	"github.com/environment-broker/environment-broker/process"
)

// resumeInstance records that the instance has a runtime again.
func resumeInstance(instances Instances) Step {
	return process.Action("Resume_Instance", "Instance is resumed, its runtime is ready",
		func(ctx context.Context, operation Operation) error {
			return instances.Resume(ctx, operation.Record, operation.Data.Instance)
		})
}
