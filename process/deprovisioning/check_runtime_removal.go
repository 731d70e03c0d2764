package deprovisioning

import (
	"context"
	"slices"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/environment-broker/environment-broker/process/provisionerwait"
)

// checkRuntimeRemoval waits until the Provisioner has removed the runtime.
type checkRuntimeRemoval struct {
	waiter provisionerwait.Waiter
}

// Name implements process.Step.
func (checkRuntimeRemoval) Name() string { return "Check_Runtime_Removal" }

// Run implements process.Step.
func (s checkRuntimeRemoval) Run(ctx context.Context, operation Operation, _ logrus.FieldLogger) (Operation, time.Duration, error) {
	if operation.Data.ProvisionerOperationID == "" || slices.Contains(operation.SkippedSteps, removeRuntime{}.Name()) {
		return operation, 0, nil // nothing was asked to be removed
	}

	return s.waiter.Await(ctx, operation)
}
