package kymachange

import (
	"context"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/environment-broker/environment-broker/process"
	"github.com/environment-broker/environment-broker/process/kymaresource"
)

// Overrides returns the step that reads the values that operators have set for Kyma. They can be secret, so they are never
// stored. The step that sends them must therefore be in the same stage; a repeated stage reads them again.
func Overrides(kyma Kyma) Step {
	return process.StepFunc("Overrides_From_Secrets_And_Config_Step",
		func(ctx context.Context, operation Operation, _ logrus.FieldLogger) (Operation, time.Duration, error) {
			changed, err := operation.Data.Changed()
			if err != nil {
				return operation, 0, err
			}

			overridden, err := kyma.Overrides(ctx, changed)
			if err != nil {
				return operation, 0, err
			}

			// In upgrades, an earlier step has set the tenant's credentials, which replace operators' values with the same keys.
			changed.Request.Cluster.Kyma = overridden
			changed.OverrideServiceManager()

			update := *operation.Data.Update
			update.Cluster.Kyma, operation.Data.Update = overridden, &update

			return operation, 0, nil
		})
}

// OverridesNotes describes a step that reads the values that operators have set for Kyma.
func OverridesNotes() process.Notes {
	return process.Notes{Does: "Reads the values that operators have set for Kyma.", System: kymaresource.System}
}
