package deprovisioning

import (
	"context"
	"slices"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/environment-broker/environment-broker/internal/logging"
	"github.com/environment-broker/environment-broker/process"
	"github.com/environment-broker/environment-broker/process/provisionerwait"
)

const stepCheckRemoval = "Check_Runtime_Removal"

// checkRuntimeRemoval waits until the Provisioner has removed the runtime. If an operator has skipped the removal request, the
// step does not wait and reports that the runtime may be left over.
func checkRuntimeRemoval(waiter provisionerwait.Waiter, leftOver leftOverFunc) Step {
	return process.StepFunc(stepCheckRemoval,
		func(ctx context.Context, operation Operation, log logrus.FieldLogger) (Operation, time.Duration, error) {
			skipped := slices.Contains(operation.SkippedSteps, stepRemoveRuntime)

			if runtimeID := operation.Data.Instance.RuntimeID; skipped && (runtimeID != "" || operation.Data.Ordered) {
				log.WithField(logging.RuntimeID, runtimeID).Warn("the removal of the runtime was skipped: its cluster may be left over")
				leftOver.report(LeftOverSkipped)
			}

			if skipped || operation.Data.ProvisionerOperationID == "" {
				return operation, 0, nil // no removal was requested
			}

			return waiter.Await(ctx, operation, log)
		})
}
