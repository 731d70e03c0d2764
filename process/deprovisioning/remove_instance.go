package deprovisioning

import (
	"context"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/environment-broker/environment-broker/internal/failure"
)

// removeInstance removes the instance's row. Its operations stay, so that what happened can still be told.
type removeInstance struct {
	instances Instances
}

// Name implements process.Step.
func (removeInstance) Name() string { return "Remove_Instance" }

// Run implements process.Step.
func (s removeInstance) Run(ctx context.Context, operation Operation, _ logrus.FieldLogger) (Operation, time.Duration, error) {
	if err := s.instances.Delete(ctx, operation.Record, operation.Data.Instance); err != nil {
		return operation, 0, failure.Wrap(failure.Transient, err, "the instance could not be removed from the database")
	}

	operation.Description = "Runtime is removed"

	return operation, 0, nil
}
