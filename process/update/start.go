package update

import (
	"context"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/environment-broker/environment-broker/internal/failure"
	"github.com/environment-broker/environment-broker/process"
)

// start reads the instance again, because it may have changed since the operation was accepted.
func start(instances Instances) Step {
	return process.StepFunc("Update_Kyma_Initialization",
		func(ctx context.Context, operation Operation, _ logrus.FieldLogger) (Operation, time.Duration, error) {
			if operation.Data.Update == nil {
				return operation, 0, failure.New(failure.Internal, "the operation contains no update")
			}

			instance, err := instances.Find(ctx, operation.InstanceID)
			if err != nil {
				return operation, 0, err
			}

			operation.Data.Instance = instance
			operation.Description = "Runtime is being updated"

			return operation, 0, nil
		})
}
