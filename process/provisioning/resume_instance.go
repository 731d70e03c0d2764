package provisioning

import (
	"context"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/environment-broker/environment-broker/process"
)

// resumeInstance records that the instance has a runtime again.
func resumeInstance(instances Instances) Step {
	return process.StepFunc("Resume_Instance",
		func(ctx context.Context, operation Operation, _ logrus.FieldLogger) (Operation, time.Duration, error) {
			if err := instances.Resume(ctx, operation.Record, operation.Data.Instance); err != nil {
				return operation, 0, err
			}

			operation.Description = "Instance is resumed, its runtime is ready"

			return operation, 0, nil
		})
}
