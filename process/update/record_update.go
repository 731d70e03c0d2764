package update

import (
	"context"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/environment-broker/environment-broker/process"
)

// recordUpdate applies the change to the instance's row.
func recordUpdate(instances Instances) Step {
	return process.StepFunc("Record_Update",
		func(ctx context.Context, operation Operation, _ logrus.FieldLogger) (Operation, time.Duration, error) {
			if err := instances.Update(ctx, operation.Record, operation.Data.Instance, *operation.Data.Update); err != nil {
				return operation, 0, err
			}

			operation.Description = "Runtime is updated"

			return operation, 0, nil
		})
}
