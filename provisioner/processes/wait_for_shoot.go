package processes

import (
	"context"
	"time"

	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	"github.com/sirupsen/logrus"

	"github.com/environment-broker/environment-broker/internal/failure"
	"github.com/environment-broker/environment-broker/process"
	"github.com/environment-broker/environment-broker/provisioner/gardener"
	"github.com/environment-broker/environment-broker/provisioner/operation"
)

// waitForRefresh waits until Gardener works on the newest generation of the Shoot. Before that, the status of the Shoot
// describes an earlier generation, and a wait for the change could mistake an old success for the result.
func (o Options) waitForRefresh(ctx context.Context, op operation.Operation, _ logrus.FieldLogger,
) (operation.Operation, time.Duration, error) {
	shoot, err := o.Shoots.Get(ctx, op.Data.Runtime.ShootName)
	if err != nil {
		return op, 0, err
	}

	switch {
	case shoot.DeletionTimestamp != nil:
		return op, 0, gardener.BeingRemoved(shoot)
	case !gardener.TakenUp(shoot):
		return o.await(op, gardener.ProgressOf(shoot), o.Timeouts.Refresh)
	default:
		return op, 0, nil
	}
}

// waitForShoot returns a step that waits until Gardener has reconciled the newest generation of the Shoot. The operation fails
// if Gardener reports an error that only a user or an operator can fix; the step makes Gardener retry all other failures. If
// lacks is not nil, the step also waits until lacks returns "". Any other result is the reason for the wait, for example that
// the cluster is not hibernated yet.
func (o Options) waitForShoot(limit time.Duration, lacks func(shoot *gardencorev1beta1.Shoot) string,
) process.RunFunc[operation.Data] {
	return func(ctx context.Context, op operation.Operation, _ logrus.FieldLogger) (operation.Operation, time.Duration, error) {
		shoot, err := o.Shoots.Get(ctx, op.Data.Runtime.ShootName)
		if err != nil {
			return op, 0, err
		}

		progress := gardener.ProgressOf(shoot)

		switch {
		case shoot.DeletionTimestamp != nil:
			return op, 0, gardener.BeingRemoved(shoot)
		case progress.Err != nil:
			return op, 0, progress.Err
		case progress.Done && lacks != nil && lacks(shoot) != "":
			return process.Await(op, lacks(shoot), o.Poll, limit)
		case progress.Done:
			op.WaitingFor = ""

			return op, 0, nil
		case progress.Stopped && progress.Rested(op.Now()):
			if err := o.Shoots.Retry(ctx, shoot); err != nil {
				return op, 0, err
			}
		}

		return o.await(op, progress, limit)
	}
}

// await runs the step again until the limit has passed, and reports Gardener's progress as the progress of the operation. After
// the limit the operation fails. The reason for the failure consists of the error codes that Gardener has reported, if any,
// because they are more specific than a timeout.
func (o Options) await(op operation.Operation, progress gardener.Progress, limit time.Duration,
) (operation.Operation, time.Duration, error) {
	op, wait, err := process.Await(op, progress.Message, o.Poll, limit)
	if err != nil && progress.Codes != "" {
		return op, wait, failure.Of(err).WithReason(progress.Codes, failure.ComponentGardener)
	}

	return op, wait, err
}
