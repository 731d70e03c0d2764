package update

import (
	"context"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/environment-broker/environment-broker/internal/clients/provisionerclient"
	"github.com/environment-broker/environment-broker/internal/failure"
	"github.com/environment-broker/environment-broker/process/provisionerwait"
)

// upgradeShoot asks the Provisioner to change the runtime. The ID of the operation is the idempotency key, so the Provisioner
// executes a repeated request only once. Kyma Provisioner has no idempotency keys and executes a repeated request again, but
// the second execution changes nothing.
type upgradeShoot struct {
	provisioner Provisioner
	waiter      provisionerwait.Waiter
}

// Name implements process.Step.
func (upgradeShoot) Name() string { return "Upgrade_Shoot" }

// Run implements process.Step.
func (s upgradeShoot) Run(ctx context.Context, operation Operation, _ logrus.FieldLogger) (Operation, time.Duration, error) {
	instance := operation.Data.Instance
	if instance.RuntimeID == "" {
		return operation, 0, failure.New(failure.Permanent, "instance %s has no runtime to change", instance.ID).
			WithReason(failure.ReasonClusterNotFound, failure.ComponentBroker)
	}

	changed, err := operation.Data.Changed()
	if err != nil {
		return operation, 0, err
	}

	upgrade, err := s.provisioner.UpgradeRuntime(ctx, provisionerclient.Caller{
		Tenant: instance.RuntimeTenant(), IdempotencyKey: operation.ID,
	}, instance, changed)

	return s.waiter.Ordered(operation, upgrade, err)
}
