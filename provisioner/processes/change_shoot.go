package processes

import (
	"context"
	"time"

	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	"github.com/sirupsen/logrus"

	"github.com/environment-broker/environment-broker/internal/failure"
	"github.com/environment-broker/environment-broker/provisioner/operation"
	"github.com/environment-broker/environment-broker/provisioner/shoot"
)

// changeShoot changes the Shoot to match the operation's order. It does not change the hibernation.
//
// The step reads the Shoot, then confirms the lease, and writes the Shoot only if it has not changed since it was read. A
// replica that froze after reading therefore cannot undo a later change.
func (o Options) changeShoot(ctx context.Context, op operation.Operation, log logrus.FieldLogger,
) (operation.Operation, time.Duration, error) {
	present, err := o.present(ctx, op)
	if err != nil {
		return op, 0, err
	}

	objects, err := o.build(op)
	if err != nil {
		return op, 0, err
	}

	objects.DroppedPools = op.Data.DroppedPools
	objects.Keep(present)

	op.Data.Asleep = shoot.ToSleep(objects.Shoot)
	op.WaitingFor = operation.ShootEvent(present.Name)

	if err := confirm(ctx, op); err != nil {
		return op, 0, err
	}

	if err := o.Shoots.Change(ctx, present, objects); err != nil {
		return op, 0, err
	}

	log.WithField("shoot", present.Name).Info("shoot changed")

	return op, 0, nil
}

// present reads the Shoot of the operation's runtime. It fails with failure.Conflict if the Shoot belongs to another runtime.
func (o Options) present(ctx context.Context, op operation.Operation) (*gardencorev1beta1.Shoot, error) {
	runtime := op.Data.Runtime

	present, err := o.Shoots.Get(ctx, runtime.ShootName)
	if err != nil {
		return nil, err
	}

	if present.Annotations[shoot.AnnotationRuntimeID] != runtime.ID {
		return nil, failure.New(failure.Conflict, "the cluster %q belongs to another runtime", runtime.ShootName).
			WithReason(failure.ReasonConflict, failure.ComponentGardener)
	}

	return present, nil
}

// confirm stores the operation before a step changes the Shoot. It fails if the replica has lost the lease.
func confirm(ctx context.Context, op operation.Operation) error {
	if err := op.Save(ctx); err != nil {
		return failure.Wrap(failure.Transient, err, "storing the operation before changing the cluster failed")
	}

	return nil
}
