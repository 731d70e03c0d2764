package deprovisioning

import (
	"context"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/environment-broker/environment-broker/internal/failure"
	"github.com/environment-broker/environment-broker/process"
)

// removeInstance removes the instance's row. Its operations are kept as its history.
func removeInstance(instances Instances) Step {
	return process.StepFunc("Remove_Instance",
		func(ctx context.Context, operation Operation, _ logrus.FieldLogger) (Operation, time.Duration, error) {
			if err := instances.Delete(ctx, operation.Record, operation.Data.Instance); err != nil {
				return operation, 0, failure.Wrap(failure.Transient, err, "removing the instance from the database failed")
			}

			operation.Description = "Runtime is removed"

			return operation, 0, nil
		})
}
