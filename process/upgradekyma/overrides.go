package upgradekyma

import (
	"context"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/environment-broker/environment-broker/process"
	"github.com/environment-broker/environment-broker/process/upgrading"
)

// overrides reads the values of Kyma that operators have set. They can be secret, so they are never stored: the order follows in the
// same stage, and a repeated stage reads them again.
func overrides(kyma Kyma) Step {
	return process.StepFunc("Overrides_From_Secrets_And_Config_Step",
		func(ctx context.Context, operation Operation, _ logrus.FieldLogger) (Operation, time.Duration, error) {
			changed, err := upgrading.Updated(operation)
			if err != nil {
				return operation, 0, err
			}

			overridden, err := kyma.Overrides(ctx, changed)
			if err != nil {
				return operation, 0, err
			}

			update := *operation.Data.Update
			update.Cluster.Kyma, operation.Data.Update = overridden, &update

			return operation, 0, nil
		})
}
