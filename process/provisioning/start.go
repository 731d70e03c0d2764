package provisioning

import (
	"context"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/environment-broker/environment-broker/process"
)

// start runs once the operation's turn has come. It reads the instance again, because it may have changed since the operation was
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
