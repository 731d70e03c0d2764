package upgradekyma

import (
	"context"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/environment-broker/environment-broker/internal/clients/provisionerclient"
	"github.com/environment-broker/environment-broker/process"
	"github.com/environment-broker/environment-broker/process/provisionerwait"
)

// rollBackKyma asks the Provisioner to reinstall the Kyma version that the last upgrade replaced, with its component values. The
// operation's ID is the idempotency key.
func rollBackKyma(provisioner Provisioner, waiter provisionerwait.Waiter) Step {
	return process.StepFunc("Roll_Back_Kyma",
		func(ctx context.Context, operation Operation, _ logrus.FieldLogger) (Operation, time.Duration, error) {
			changed, err := operation.Data.Changed()
			if err != nil {
				return operation, 0, err
			}

			rollback, err := provisioner.RollBackKyma(ctx, provisionerclient.Caller{
				Tenant: changed.RuntimeTenant(), IdempotencyKey: operation.ID,
			}, changed)

			return waiter.Ordered(operation, rollback, err)
		})
}
