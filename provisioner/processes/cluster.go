package processes

import (
	"context"
	"time"

	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"

	"github.com/environment-broker/environment-broker/internal/failure"
	"github.com/environment-broker/environment-broker/process"
	"github.com/environment-broker/environment-broker/provisioner/operation"
	"github.com/environment-broker/environment-broker/provisioner/shoot"
)

// reachable reports whether the runtime has a cluster with a running API server that may contain objects to clean up. It reads
// only the Shoot, so it also returns true for a broken API server. It returns false if the cluster does not exist, belongs to
// another runtime, is hibernated or being deleted, or if its creation was never completed.
func (o Options) reachable(ctx context.Context, op operation.Operation) (bool, error) {
	existing, err := o.Shoots.Get(ctx, op.Data.Runtime.ShootName)
	if failure.Is(err, failure.NotFound) {
		return false, nil
	}

	if err != nil {
		return false, err
	}

	last := existing.Status.LastOperation

	switch {
	case existing.Annotations[shoot.AnnotationRuntimeID] != op.Data.Runtime.ID, existing.DeletionTimestamp != nil:
		return false, nil
	case shoot.Asleep(existing):
		return false, nil
	case last == nil, last.Type == gardencorev1beta1.LastOperationTypeCreate && last.State != gardencorev1beta1.LastOperationStateSucceeded:
		return false, nil
	default:
		return true, nil
	}
}

// retryCleanup runs the step again until the limit has passed since its first run. After that it records the step as not
// completed and the removal continues, because a leaked cluster costs more than a leaked object. If the attempt is canceled, for
// example by a shutdown, it returns a transient error.
func (o Options) retryCleanup(ctx context.Context, op operation.Operation, why string, err error, limit time.Duration,
) (operation.Operation, time.Duration, error) {
	switch {
	case ctx.Err() != nil:
		return op, 0, failure.Wrap(failure.Transient, ctx.Err(), "%s", why)
	case op.Elapsed() >= limit:
		return process.RetryOperationWithoutFail(op, why, err, o.WorkPoll, 0)
	case err != nil:
		return process.RetryOperationWithoutFail(op, why, err, o.WorkPoll, limit)
	default:
		return process.Await(op, why, o.WorkPoll, limit)
	}
}
