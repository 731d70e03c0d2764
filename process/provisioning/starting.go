package provisioning

import (
	"context"
	"time"

	"github.com/sirupsen/logrus"
)

// starting is where the operation begins once its turn has come. It takes the instance as it is now, not as it was when the
// operation was accepted.
type starting struct {
	instances Instances
}

// Name implements process.Step.
func (starting) Name() string { return "Starting" }

// Run implements process.Step.
func (s starting) Run(ctx context.Context, operation Operation, _ logrus.FieldLogger) (Operation, time.Duration, error) {
	instance, err := s.instances.Find(ctx, operation.InstanceID)
	if err != nil {
		return operation, 0, err
	}

	operation.Data.Instance = instance
	operation.Description = "Runtime is being created"

	return operation, 0, nil
}
