package deprovisioning

import (
	"context"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/environment-broker/environment-broker/internal/environment"
	"github.com/environment-broker/environment-broker/process"
)

// releaseSubscription retries for at most releaseWindow. Then the deletion continues, and the sweep of the account pool completes the
// release.
const (
	releaseInterval = 10 * time.Second
	releaseWindow   = 5 * time.Minute
)

const stepRelease = "Release_Subscription"

// Accounts takes back the cloud accounts of deleted instances. accountpool.Instances implements it.
type Accounts interface {
	// Release returns the account of the instance to the pool. It succeeds if the instance uses no account.
	Release(ctx context.Context, instance environment.Instance) error
}

// releaseSubscription returns the account of the instance to the account pool. If the instance is the tenant's last one in the
// account, the account is marked as dirty.
func releaseSubscription(accounts Accounts) Step {
	return process.StepFunc(stepRelease,
		func(ctx context.Context, operation Operation, _ logrus.FieldLogger) (Operation, time.Duration, error) {
			err := accounts.Release(ctx, operation.Data.Instance)
			if err != nil {
				return process.RetryOperationWithoutFail(operation, "releasing the account", err, releaseInterval, releaseWindow)
			}

			return operation, 0, nil
		})
}
