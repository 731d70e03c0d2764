package processes

import (
	"context"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/environment-broker/environment-broker/provisioner/operation"
)

// cleanUp deletes those service instances in the cluster that belong to the configured service brokers. The instances represent
// resources outside the cluster, and only the cluster has a record of them: after the cluster is deleted, nobody would
// deprovision them. Each attempt deletes some of the instances. After Timeouts.Cleanup the removal continues even if instances
// remain.
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
