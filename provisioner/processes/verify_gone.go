package processes

import (
	"context"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/environment-broker/environment-broker/internal/failure"
	"github.com/environment-broker/environment-broker/process"
	"github.com/environment-broker/environment-broker/provisioner/operation"
	"github.com/environment-broker/environment-broker/provisioner/shoot"
)

// verifyGone reads the Shoot once more after the deletion is recorded. It deletes a Shoot that a frozen replica has created
// late. The background job service.Orphans removes Shoots that appear even later. If the Shoot is gone, the step also deletes
// the objects that the Shoot referred to.
func (o Options) verifyGone(ctx context.Context, op operation.Operation, log logrus.FieldLogger,
) (operation.Operation, time.Duration, error) {
	runtime := op.Data.Runtime

	existing, err := o.Shoots.Get(ctx, runtime.ShootName)
	if failure.Is(err, failure.NotFound) || err == nil && existing.Annotations[shoot.AnnotationRuntimeID] != runtime.ID {
		return op, 0, o.Shoots.Tidy(ctx, runtime.ID, nil)
	}

	if err != nil {
		return op, 0, err
	}

	log.WithField("shoot", runtime.ShootName).Warn("deleting a cluster that was created after its removal had started")

	if err := o.Shoots.Delete(ctx, runtime.ShootName, runtime.ID); err != nil {
		return op, 0, err
	}

	return process.Await(op, "deleting a cluster that was created after its removal had started", o.Poll, o.Timeouts.Deletion)
}
