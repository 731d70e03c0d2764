package provisioning

import (
	"context"
	"time"

	"github.com/sirupsen/logrus"
)

// resumeInstance records that the instance has a runtime again.
type resumeInstance struct {
	instances Instances
}

// Name implements process.Step.
func (resumeInstance) Name() string { return "Resume_Instance" }

// Run implements process.Step.
func (s resumeInstance) Run(ctx context.Context, operation Operation, _ logrus.FieldLogger) (Operation, time.Duration, error) {
	if err := s.instances.Resume(ctx, operation.Record, operation.Data.Instance); err != nil {
		return operation, 0, err
	}

	operation.Description = "Instance is resumed, its runtime is ready"

	return operation, 0, nil
}
