package provisioning

import (
	"context"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/environment-broker/environment-broker/internal/failure"
)

// resolveTargetSecret decides with which credentials the runtime is made. What was decided once stays.
type resolveTargetSecret struct {
	secrets map[string]string
}

// Name implements process.Step.
func (resolveTargetSecret) Name() string { return "Resolve_Target_Secret" }

// Run implements process.Step.
func (s resolveTargetSecret) Run(_ context.Context, operation Operation, _ logrus.FieldLogger) (Operation, time.Duration, error) {
	if operation.Data.TargetSecret == "" {
		provider := operation.Data.Instance.Provider

		secret, known := s.secrets[provider]
		if !known {
			return operation, 0, failure.New(failure.Permanent,
				"there are no credentials for provider %q: an operator has to set APP_TARGET_SECRETS", provider)
		}

		operation.Data.TargetSecret = secret
	}

	return operation, 0, nil
}
