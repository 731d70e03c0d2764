package upgradecluster

import (
	"context"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/environment-broker/environment-broker/internal/failure"
	"github.com/environment-broker/environment-broker/internal/provisionerclient"
	"github.com/environment-broker/environment-broker/process"
	"github.com/environment-broker/environment-broker/process/provisionerwait"
	"github.com/environment-broker/environment-broker/process/upgrading"
)

// upgradeCluster asks the Provisioner to change the cluster. The ID of the operation is the idempotency key.
func upgradeCluster(provisioner Provisioner, waiter provisionerwait.Waiter) Step {
	return process.StepFunc("Upgrade_Cluster",
		func(ctx context.Context, operation Operation, _ logrus.FieldLogger) (Operation, time.Duration, error) {
			instance := operation.Data.Instance

			changed, err := upgrading.Updated(operation)
			if err != nil {
				return operation, 0, err
			}

			upgrade, err := provisioner.UpgradeRuntime(ctx, provisionerclient.Caller{
				Tenant: instance.RuntimeTenant(), IdempotencyKey: operation.ID,
			}, instance, changed)

			switch {
			case failure.Is(err, failure.Waiting):
				return waiter.AwaitIdle(operation)
			case err != nil:
				return operation, 0, err
			}

			operation.Data.ProvisionerOperationID = upgrade.ID
			operation.WaitingFor = provisionerwait.Event(upgrade.ID)

			return operation, 0, nil
		})
}
