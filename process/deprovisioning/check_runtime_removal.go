package deprovisioning

import (
	"context"
	"slices"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/environment-broker/environment-broker/process"
	"github.com/environment-broker/environment-broker/process/provisionerwait"
)

// checkRuntimeRemoval waits until the Provisioner has removed the runtime.
func checkRuntimeRemoval(waiter provisionerwait.Waiter) Step {
	return process.StepFunc("Check_Runtime_Removal",
		func(ctx context.Context, operation Operation, log logrus.FieldLogger) (Operation, time.Duration, error) {
			if operation.Data.ProvisionerOperationID == "" || slices.Contains(operation.SkippedSteps, removeRuntime{}.Name()) {
				return operation, 0, nil // no removal was requested
			}

			return waiter.Await(ctx, operation, log)
		})
}
