package deprovisioning

import (
	"context"
	"time"

	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"

	"github.com/environment-broker/environment-broker/internal/failure"
	"github.com/environment-broker/environment-broker/process"
	"github.com/environment-broker/environment-broker/provisioner/operation"
	"github.com/environment-broker/environment-broker/provisioner/shoot"
)

// inhabited reports whether there is a cluster of the runtime that answers and may hold something.
func inhabited(ctx context.Context, shoots Shoots, op operation.Operation) (bool, error) {
	existing, err := shoots.Get(ctx, op.Data.Runtime.ShootName)
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
		return false, nil // it was never whole
	default:
		return true, nil
	}
}

// patiently has the step run again until it has taken so long since its first run. Then it is recorded as not completed and the
// removal goes on: what is left goes with the cluster.
func patiently(ctx context.Context, op operation.Operation, why string, err error, poll, limit time.Duration,
) (operation.Operation, time.Duration, error) {
	switch {
	case ctx.Err() != nil:
		return op, 0, failure.Wrap(failure.Transient, ctx.Err(), "%s", why)
	case op.Elapsed() >= limit:
		return process.RetryOperationWithoutFail(op, why, err, poll, 0)
	case err != nil:
		return process.RetryOperationWithoutFail(op, why, err, poll, limit)
	default:
		return process.Await(op, why, poll, limit)
	}
}
