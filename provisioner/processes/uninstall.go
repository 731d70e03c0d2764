package processes

import (
	"context"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/environment-broker/environment-broker/provisioner/installation"
	"github.com/environment-broker/environment-broker/provisioner/operation"
)

// uninstall removes Kyma from the cluster. The components release their resources outside the cluster while they are
// uninstalled. After uninstallTimeout the removal continues, and the remaining parts are deleted with the cluster.
func (o Options) uninstall(ctx context.Context, op operation.Operation, _ logrus.FieldLogger,
) (operation.Operation, time.Duration, error) {
	reachable, err := o.reachable(ctx, op)
	if err != nil || !reachable {
		return op, 0, err
	}

	progress, err := o.uninstallPart(ctx, op)
	if err != nil {
		return o.retryCleanup(ctx, op, "Kyma could not be removed from the cluster", err, uninstallTimeout)
	}

	if !progress.Done {
		return o.retryCleanup(ctx, op, progress.Message, nil, uninstallTimeout)
	}

	return op, 0, nil
}

// uninstallPart does one unit of work. It takes at most uninstallTimeout, the limit of the whole uninstallation.
func (o Options) uninstallPart(ctx context.Context, op operation.Operation) (installation.Progress, error) {
	ctx, cancel := context.WithTimeout(ctx, uninstallTimeout)
	defer cancel()

	cluster, disconnect, err := o.Clusters.Connect(ctx, op.Data.Runtime.ShootName)
	if err != nil {
		return installation.Progress{}, err
	}
	defer disconnect()

	return o.Installer.Uninstall(ctx, target(op, cluster))
}
