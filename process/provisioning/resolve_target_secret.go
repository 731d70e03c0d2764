package provisioning

import (
	"context"
	"slices"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/environment-broker/environment-broker/internal/failure"
	"github.com/environment-broker/environment-broker/process"
)

// resolveTargetSecret chooses the Gardener credentials for the runtime, by provider. The choice never changes within an
// operation, because an order that is repeated under its idempotency key must stay the same. A retry is a new operation with a
// new key. It chooses again, so that it uses a corrected APP_TARGET_SECRETS.
func resolveTargetSecret(secrets map[string]string) Step {
	return process.StepFunc("Resolve_Target_Secret",
		func(_ context.Context, operation Operation, _ logrus.FieldLogger) (Operation, time.Duration, error) {
			if chosen := operation.Data.TargetSecret; chosen == "" || operation.Data.Provisioning != operation.ID {
				provider := operation.Data.Instance.Provider

				secret, configured := secrets[provider]
				if !configured {
					return operation, 0, failure.New(failure.Permanent,
						"no credentials for provider %q: an operator has to set APP_TARGET_SECRETS", provider)
				}

				operation.Data.TargetSecret = secret
				if chosen != "" && chosen != secret && !slices.Contains(operation.Data.EarlierSecrets, chosen) {
					operation.Data.EarlierSecrets = append(operation.Data.EarlierSecrets, chosen)
				}
			}

			return operation, 0, nil
		})
}
