package update

import (
	"context"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/environment-broker/environment-broker/internal/clients/provisionerclient"
	"github.com/environment-broker/environment-broker/process"
	"github.com/environment-broker/environment-broker/process/provisionerwait"
)

// kymaKey is appended to the operation's ID to form the idempotency key, because the ID alone is already the key of Upgrade_Shoot.
const kymaKey = "-kyma"

// upgradeKyma asks the Provisioner to install the modules that the update selects and to remove all others.
func upgradeKyma(provisioner Provisioner, waiter provisionerwait.Waiter) Step {
	return process.StepFunc("Upgrade_Kyma",
		func(ctx context.Context, operation Operation, _ logrus.FieldLogger) (Operation, time.Duration, error) {
			changed, err := operation.Data.Changed()
			if err != nil {
				return operation, 0, err
			}

			upgrade, err := provisioner.UpgradeKyma(ctx, provisionerclient.Caller{
				Tenant: changed.RuntimeTenant(), IdempotencyKey: operation.ID + kymaKey,
			}, changed)

			return waiter.Ordered(operation, upgrade, err)
		})
}
