package processes

import (
	"context"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/environment-broker/environment-broker/provisioner/gardener"
	"github.com/environment-broker/environment-broker/provisioner/operation"
)

// waitForDomain waits until Gardener has assigned a domain to the cluster. Gardener first has to choose a Seed.
func (o Options) waitForDomain(ctx context.Context, op operation.Operation, _ logrus.FieldLogger,
) (operation.Operation, time.Duration, error) {
	shoot, err := o.Shoots.Get(ctx, op.Data.Runtime.ShootName)
	if err != nil {
		return op, 0, err
	}

	progress := gardener.ProgressOf(shoot)

	switch {
	case shoot.Spec.DNS != nil && shoot.Spec.DNS.Domain != nil && *shoot.Spec.DNS.Domain != "":
		return op, 0, nil
	case shoot.DeletionTimestamp != nil:
		return op, 0, gardener.BeingRemoved(shoot)
	case progress.Err != nil:
		return op, 0, progress.Err
	default:
		progress.Message = "the cluster has no domain yet: " + progress.Message

		return o.await(op, progress, o.Timeouts.Domain)
	}
}
