package provisioning

import (
	"context"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/environment-broker/environment-broker/process"
)

// overrides reads the values that operators have set for Kyma. They can be secret, so they are never stored. The step that orders the
// runtime is therefore in the same stage; a repeated stage reads the values again.
func overrides(kyma Kyma) Step {
	return process.StepFunc("Overrides_From_Secrets_And_Config_Step",
		func(ctx context.Context, operation Operation, _ logrus.FieldLogger) (Operation, time.Duration, error) {
			if operation.Data.Instance.Request.Cluster.Kyma == nil {
				return operation, 0, nil
			}

			overridden, err := kyma.Overrides(ctx, operation.Data.Instance)
			if err != nil {
				return operation, 0, err
			}

			operation.Data.Instance.Request.Cluster.Kyma = overridden

			return operation, 0, nil
		})
}
