package provisioning

import (
	"context"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/environment-broker/environment-broker/process"
)

// start reads the instance again, because an earlier operation or a request may have changed it since this operation was
// accepted.
func start(instances Instances) Step {
	return process.StepFunc("Starting", func(ctx context.Context, operation Operation, _ logrus.FieldLogger) (Operation, time.Duration, error) {
		instance, err := instances.Find(ctx, operation.InstanceID)
		if err != nil {
			return operation, 0, err
		}

		operation.Data.Instance = instance
		operation.Description = "Runtime is being created"

		return operation, 0, nil
	})
}
