package deprovisioning

import (
	"context"
	"time"

	"github.com/sirupsen/logrus"
)

// suspendInstance records that the instance has no runtime any more, and what else the platform wanted of it.
type suspendInstance struct {
	instances Suspensions
}

// Name implements process.Step.
func (suspendInstance) Name() string { return "Suspend_Instance" }

// Run implements process.Step.
func (s suspendInstance) Run(ctx context.Context, operation Operation, _ logrus.FieldLogger) (Operation, time.Duration, error) {
	if err := s.instances.Suspend(ctx, operation.Record, operation.Data.Instance, operation.Data.Update); err != nil {
		return operation, 0, err
	}

	operation.Description = "Instance is suspended, its runtime is removed"

	return operation, 0, nil
}
