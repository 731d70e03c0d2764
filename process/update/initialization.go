package update

import (
	"context"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/environment-broker/environment-broker/internal/failure"
)

// initialization takes the instance as it is now, not as it was when the operation was accepted.
type initialization struct {
	instances Instances
}

// Name implements process.Step.
func (initialization) Name() string { return "Update_Kyma_Initialization" }

// Run implements process.Step.
func (s initialization) Run(ctx context.Context, operation Operation, _ logrus.FieldLogger) (Operation, time.Duration, error) {
	if operation.Data.Update == nil {
		return operation, 0, failure.New(failure.Internal, "the update does not say what to change")
	}

	instance, err := s.instances.Find(ctx, operation.InstanceID)
	if err != nil {
		return operation, 0, err
	}

	operation.Data.Instance = instance
	operation.Description = "Runtime is being updated"

	return operation, 0, nil
}
