package processes

import (
	"context"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/environment-broker/environment-broker/provisioner/operation"
)

// releaseBrokers removes the finalizers of the service brokers in the cluster. Usually their controller does this, but the
// controller is a component of Kyma, which the next step uninstalls. Remaining finalizers would block the deletion of the
// cluster.
func (o Options) releaseBrokers(ctx context.Context, op operation.Operation, _ logrus.FieldLogger,
) (operation.Operation, time.Duration, error) {
	reachable, err := o.reachable(ctx, op)
	if err != nil || !reachable {
		return op, 0, err
	}

	if err := o.Clusters.ReleaseBrokers(ctx, op.Data.Runtime.ShootName); err != nil {
		return o.retryCleanup(ctx, op, "the finalizers of the service brokers in the cluster could not be removed", err, releaseTimeout)
	}

	return op, 0, nil
}
