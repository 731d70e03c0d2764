package deprovisioning

import (
	"context"
	"time"

	"github.com/sirupsen/logrus"
)

// initStep takes over what the provisioning knew, whether it succeeded, failed or was canceled: what it has ordered is to be
// removed.
type initStep struct {
	provisionings Provisionings
}

// Name implements process.Step.
func (initStep) Name() string { return "Init_Step" }

// Run implements process.Step.
func (s initStep) Run(ctx context.Context, operation Operation, _ logrus.FieldLogger) (Operation, time.Duration, error) {
	past, err := s.provisionings.LastProvisioning(ctx, operation.InstanceID)
	if err != nil {
		return operation, 0, err
	}

	if runtimeID := past.Instance.RuntimeID; runtimeID != "" {
		operation.Data.Instance.RuntimeID = runtimeID
	}

	operation.Data.Provisioning = past.Provisioning
	operation.Data.Ordered = past.Ordered
	operation.Data.TargetSecret = past.TargetSecret
	operation.Description = "Runtime is being removed"

	return operation, 0, nil
}
