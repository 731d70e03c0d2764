package deprovisioning

import (
	"context"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/environment-broker/environment-broker/provisioner/installation"
	"github.com/environment-broker/environment-broker/provisioner/kyma"
	"github.com/environment-broker/environment-broker/provisioner/operation"
)

// uninstall removes Kyma, so that it gives back what it holds outside of the cluster.
type uninstall struct {
	shoots      Shoots
	clusters    kyma.Clusters
	installer   installation.Installer
	poll, limit time.Duration
}

// Name implements process.Step.
func (uninstall) Name() string { return "Uninstall_Kyma" }

// Run implements process.Step.
func (s uninstall) Run(ctx context.Context, op operation.Operation, _ logrus.FieldLogger,
) (operation.Operation, time.Duration, error) {
	there, err := inhabited(ctx, s.shoots, op)
	if err != nil || !there {
		return op, 0, err
	}

	progress, err := s.remove(ctx, op)
	if err != nil {
		return patiently(ctx, op, "Kyma could not be removed from the cluster", err, s.poll, s.limit)
	}

	if !progress.Done {
		return patiently(ctx, op, progress.Message, nil, s.poll, s.limit)
	}

	return op, 0, nil
}

// remove does a piece of work, and does not take longer for it than there is time at all.
func (s uninstall) remove(ctx context.Context, op operation.Operation) (installation.Progress, error) {
	ctx, cancel := context.WithTimeout(ctx, s.limit)
	defer cancel()

	cluster, disconnect, err := s.clusters.Connect(ctx, op.Data.Runtime.ShootName)
	if err != nil {
		return installation.Progress{}, err
	}
	defer disconnect()

	return s.installer.Uninstall(ctx, cluster, op.Data.Runtime.ID)
}
