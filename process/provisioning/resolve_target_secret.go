package provisioning

import (
	"context"
	"slices"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/environment-broker/environment-broker/internal/environment"
	"github.com/environment-broker/environment-broker/internal/failure"
	"github.com/environment-broker/environment-broker/process"
)

// If the pool has no free account, an operation looks again every accountInterval, for at most accountWait. In that time,
// operators can react to the alert on the empty pool, and other tenants may return accounts.
const (
	accountInterval = 10 * time.Second
	accountWait     = 10 * time.Minute
)

// Accounts chooses the Gardener credentials for an instance. Pool and StaticAccounts implement it.
type Accounts interface {
	// Assign returns the name of the credentials. The error is of kind failure.Waiting if no account is free.
	Assign(ctx context.Context, instance environment.Instance) (string, error)
}

// StaticAccounts maps providers to the names of Gardener credentials. All instances of a provider share one account.
type StaticAccounts map[string]string

// Assign implements Accounts.
func (s StaticAccounts) Assign(_ context.Context, instance environment.Instance) (string, error) {
	secret, configured := s[instance.Provider]
	if !configured {
		return "", failure.New(failure.Permanent, "no credentials for provider %q: an operator must set APP_TARGET_SECRETS", instance.Provider)
	}

	return secret, nil
}

// resolveTargetSecret chooses the Gardener credentials for the runtime. If the instance has its own credentials, it chooses those.
// The choice never changes once the operation has ordered the runtime, because an order that is repeated under its idempotency key
// must stay the same. A retry is a new operation with a new key, and chooses again, so that it uses a corrected configuration.
func resolveTargetSecret(accounts Accounts) Step {
	return process.StepFunc("Resolve_Target_Secret",
		func(ctx context.Context, operation Operation, _ logrus.FieldLogger) (Operation, time.Duration, error) {
			chosen := operation.Data.TargetSecret
			if chosen != "" && operation.Data.Provisioning == operation.ID {
				return operation, 0, nil
			}

			secret, err := operation.Data.Instance.Request.Cluster.TargetSecret, error(nil)
			if secret == "" {
				secret, err = accounts.Assign(ctx, operation.Data.Instance)
			}

			if failure.Is(err, failure.Waiting) {
				return awaitAccount(operation, operation.Elapsed(), err)
			}

			if err != nil {
				return operation, 0, err
			}

			operation.Data.TargetSecret = secret
			if chosen != "" && chosen != secret && !slices.Contains(operation.Data.EarlierSecrets, chosen) {
				operation.Data.EarlierSecrets = append(operation.Data.EarlierSecrets, chosen)
			}

			return operation, 0, nil
		})
}

// awaitAccount runs the step again until accountWait has passed since its first attempt. It then fails the operation.
func awaitAccount(operation Operation, elapsed time.Duration, noneFree error) (Operation, time.Duration, error) {
	if elapsed < accountWait {
		return process.Await(operation, failure.Of(noneFree).Text, accountInterval, accountWait)
	}

	return operation, 0, failure.Wrap(failure.Quota, noneFree, "%s after %s: an operator must add accounts to the pool, or clean up "+
		"the accounts of deleted instances, and then retry the operation", failure.Of(noneFree).Text, accountWait)
}
