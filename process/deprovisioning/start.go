package deprovisioning

import (
	"context"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/environment-broker/environment-broker/process"
)

// start copies data from the operation that ordered the runtime, whether that operation succeeded, failed or was canceled. The
// removal needs the runtime's ID or, if that never reached the broker, the data of the order.
func start(provisionings Provisionings) Step {
	return process.StepFunc("Init_Step",
		func(ctx context.Context, operation Operation, _ logrus.FieldLogger) (Operation, time.Duration, error) {
			provisioning, err := provisionings.LastProvisioning(ctx, operation.InstanceID)
			if err != nil {
				return operation, 0, err
			}

			if runtimeID := provisioning.Instance.RuntimeID; runtimeID != "" {
				operation.Data.Instance.RuntimeID = runtimeID
			}

			operation.Data.Provisioning = provisioning.Provisioning
			operation.Data.Ordered = provisioning.Ordered
			operation.Data.TargetSecret = provisioning.TargetSecret
			operation.Data.EarlierSecrets = provisioning.EarlierSecrets
			operation.Description = "Runtime is being removed"

			return operation, 0, nil
		})
}
