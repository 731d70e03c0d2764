package processes

import (
	"context"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/environment-broker/environment-broker/internal/failure"
	"github.com/environment-broker/environment-broker/provisioner/gardener"
	"github.com/environment-broker/environment-broker/provisioner/operation"
	"github.com/environment-broker/environment-broker/provisioner/shoot"
)

// waitForDeletion waits until the cluster is gone. Because a leaked cluster costs money, the step makes Gardener retry a failed
// deletion, whatever the cause, until the limit. It also deletes a Shoot that a frozen replica has created after the deletion.
func (o Options) waitForDeletion(ctx context.Context, op operation.Operation, log logrus.FieldLogger,
) (operation.Operation, time.Duration, error) {
	existing, err := o.Shoots.Get(ctx, op.Data.Runtime.ShootName)
	if failure.Is(err, failure.NotFound) {
		op.WaitingFor = ""

		return op, 0, nil
	}

	if err != nil {
		return op, 0, err
	}

	if existing.Annotations[shoot.AnnotationRuntimeID] != op.Data.Runtime.ID {
		return op, 0, nil // this cluster is gone, and another runtime uses its name
	}

	if existing.DeletionTimestamp == nil {
		log.WithField("shoot", existing.Name).Warn("deleting a cluster that was created after its removal had started")

		if err := o.Shoots.Delete(ctx, existing.Name, op.Data.Runtime.ID); err != nil {
			return op, 0, err
		}
	}

	progress := gardener.ProgressOf(existing)
	if (progress.Stopped || progress.Err != nil) && progress.Rested(op.Now()) {
		if err := o.Shoots.Retry(ctx, existing); err != nil {
			return op, 0, err
		}
	}

	if progress.Done {
		progress.Message = "Gardener has not started to delete the cluster yet"
	}

	return o.await(op, progress, o.Timeouts.Deletion)
}
