package provisioning

import (
	"context"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/environment-broker/environment-broker/internal/failure"
	"github.com/environment-broker/environment-broker/process"
)

// resolveTargetSecret chooses the Gardener credentials for the runtime, by provider. The first choice is stored and never
// changes, because a repeated order with other credentials would be another order.
func resolveTargetSecret(secrets map[string]string) Step {
	return process.StepFunc("Resolve_Target_Secret",
		func(_ context.Context, operation Operation, _ logrus.FieldLogger) (Operation, time.Duration, error) {
			if operation.Data.TargetSecret == "" {
				provider := operation.Data.Instance.Provider

				secret, known := secrets[provider]
				if !known {
					return operation, 0, failure.New(failure.Permanent,
						"no credentials for provider %q: an operator has to set APP_TARGET_SECRETS", provider)
				}

				operation.Data.TargetSecret = secret
			}

			return operation, 0, nil
		})
}
