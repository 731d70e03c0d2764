package processes

import (
	"context"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/environment-broker/environment-broker/provisioner/operation"
)

// cleanUp deletes the service instances in the cluster that come from the configured service brokers. Such an instance is a
// resource outside the cluster, but only the cluster knows about it: once the cluster is deleted, nobody would deprovision it.
// Each attempt removes some of the instances; after Timeouts.Cleanup the removal continues even if some are left.
func (o Options) cleanUp(ctx context.Context, op operation.Operation, _ logrus.FieldLogger,
) (operation.Operation, time.Duration, error) {
	reachable, err := o.reachable(ctx, op)
	if err != nil || !reachable {
		return op, 0, err
	}

	left, err := o.Clusters.RemoveServices(ctx, op.Data.Runtime.ShootName, o.ServiceBrokers)
	if err == nil && left == "" {
		return op, 0, nil
	}

	why := "the services of the cluster are being deleted"
	if left != "" {
		why += ", remaining: " + left
	}

	return o.retryCleanup(ctx, op, why, err, o.Timeouts.Cleanup)
}
