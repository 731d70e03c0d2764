package update

import (
	"context"
	"time"

	"github.com/sirupsen/logrus"
)

// recordUpdate makes the instance what its runtime is now.
type recordUpdate struct {
	instances Instances
}

// Name implements process.Step.
func (recordUpdate) Name() string { return "Record_Update" }

// Run implements process.Step.
func (s recordUpdate) Run(ctx context.Context, operation Operation, _ logrus.FieldLogger) (Operation, time.Duration, error) {
	if err := s.instances.Update(ctx, operation.Record, operation.Data.Instance, *operation.Data.Update); err != nil {
		return operation, 0, err
	}

	operation.Description = "Runtime is updated"

	return operation, 0, nil
}
