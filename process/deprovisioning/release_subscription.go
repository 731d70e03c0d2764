package deprovisioning

import (
	"context"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/environment-broker/environment-broker/internal/environment"
	"github.com/environment-broker/environment-broker/process"
)

// The step releaseSubscription retries for releaseWindow. Afterwards the deletion continues: the job that sweeps the account pool
// completes the release.
const (
	releaseInterval = 10 * time.Second
	releaseWindow   = 5 * time.Minute
)

// stepRelease is the name of the step releaseSubscription.
const stepRelease = "Release_Subscription"

// Accounts takes back the cloud accounts of deleted instances; accountpool.Instances implements it.
type Accounts interface {
	// Release gives back the account of the instance. It succeeds if the instance uses none.
	Release(ctx context.Context, instance environment.Instance) error
}

// releaseSubscription gives the account of the instance back to the account pool. The last instance of the tenant in an account
// marks it as dirty.
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
