package upgradekyma

import (
	"context"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/environment-broker/environment-broker/internal/clients/provisionerclient"
	"github.com/environment-broker/environment-broker/process"
	"github.com/environment-broker/environment-broker/process/provisionerwait"
)

// upgradeKyma asks the Provisioner to install the chosen version. The operation's ID is the idempotency key, so a repeated request
// counts as the same order. The step therefore stores the chosen version before the first request.
func upgradeKyma(provisioner Provisioner, waiter provisionerwait.Waiter) Step {
	return process.StepFunc("Upgrade_Kyma",
		func(ctx context.Context, operation Operation, _ logrus.FieldLogger) (Operation, time.Duration, error) {
			changed, err := operation.Data.Changed()
			if err != nil {
				return operation, 0, err
			}

			if err := operation.Save(ctx); err != nil {
				return operation, 0, err
			}

			upgrade, err := provisioner.UpgradeKyma(ctx, provisionerclient.Caller{
				Tenant: changed.RuntimeTenant(), IdempotencyKey: operation.ID,
			}, changed)

			return waiter.Ordered(operation, upgrade, err)
		})
}
