package upgradekyma

import (
	"context"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/environment-broker/environment-broker/internal/environment"
	"github.com/environment-broker/environment-broker/internal/failure"
	"github.com/environment-broker/environment-broker/process"
	"github.com/environment-broker/environment-broker/process/kymachange"
	"github.com/environment-broker/environment-broker/process/upgrading"
)

// initialization reads the instance and chooses the version and the components of Kyma. The choice never changes within an
// operation, because an order that is repeated under its idempotency key must stay the same. A retry chooses again. In a rollback,
// there is nothing to choose.
func initialization(instances upgrading.Instances, kyma kymachange.Kyma) Step {
	start := upgrading.Start("Upgrade_Kyma_Initialization", "Kyma is being upgraded", instances, changeVersion)

	return process.StepFunc(start.Name(),
		func(ctx context.Context, operation Operation, log logrus.FieldLogger) (Operation, time.Duration, error) {
			operation, wait, err := start.Run(ctx, operation, log)
			if upgrade := operation.Data.Upgrade; err != nil || upgrade.DryRun || upgrade.Preempted || upgrade.Former != nil {
				return operation, wait, err
			}

			changed, err := operation.Data.Changed()
			if err != nil {
				return operation, 0, err
			}

			completed, err := kyma.Complete(ctx, changed)
			if err != nil {
				return operation, 0, err
			}

			operation.Data.Update.Cluster.Kyma, operation.Data.KymaChosenBy = completed, operation.ID

			return operation, 0, nil
		})
}

// changeVersion sets the Kyma configuration of the update. In a rollback, this is the configuration from before the last upgrade.
// Otherwise, only the version changes: to the one that an earlier attempt of this operation or the operator has chosen, or to ""
// if none was chosen.
func changeVersion(operation Operation, update *environment.Update) error {
	if update.Cluster.Kyma == nil {
		return failure.New(failure.Permanent, "instance %s has no Kyma to upgrade", operation.InstanceID)
	}

	if former := operation.Data.Upgrade.Former; former != nil {
		update.Cluster.Kyma = former

		return nil
	}

	changed := *update.Cluster.Kyma
	changed.Version = operation.Data.Upgrade.Version

	if operation.Data.KymaChosenBy == operation.ID {
		changed.Version = operation.Data.Update.Cluster.Kyma.Version
	}

	update.Cluster.Kyma = &changed

	return nil
}
