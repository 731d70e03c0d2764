package upgradecluster

import (
	"context"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/environment-broker/environment-broker/internal/clients/provisionerclient"
	"github.com/environment-broker/environment-broker/process"
	"github.com/environment-broker/environment-broker/process/provisionerwait"
)

// upgradeCluster asks the Provisioner to change the cluster. The ID of the operation is the idempotency key.
func upgradeCluster(provisioner Provisioner, waiter provisionerwait.Waiter) Step {
	return process.StepFunc("Upgrade_Cluster",
		func(ctx context.Context, operation Operation, _ logrus.FieldLogger) (Operation, time.Duration, error) {
			instance := operation.Data.Instance

			changed, err := operation.Data.Changed()
			if err != nil {
				return operation, 0, err
			}

			upgrade, err := provisioner.UpgradeRuntime(ctx, provisionerclient.Caller{
				Tenant: instance.RuntimeTenant(), IdempotencyKey: operation.ID,
			}, instance, changed)

			return waiter.Ordered(operation, upgrade, err)
		})
}
