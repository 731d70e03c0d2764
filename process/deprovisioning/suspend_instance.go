package deprovisioning

import (
	"context"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/environment-broker/environment-broker/process"
)

// suspendInstance records that the instance has no runtime any more, together with the other changes that the platform requested.
func suspendInstance(instances Suspensions) Step {
	return process.StepFunc("Suspend_Instance",
		func(ctx context.Context, operation Operation, _ logrus.FieldLogger) (Operation, time.Duration, error) {
			if err := instances.Suspend(ctx, operation.Record, operation.Data.Instance, operation.Data.Update); err != nil {
				return operation, 0, err
			}

			operation.Description = "Instance is suspended, its runtime is removed"

			return operation, 0, nil
		})
}
