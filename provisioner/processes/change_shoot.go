package processes

import (
	"context"
	"time"

	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	"github.com/sirupsen/logrus"

	"github.com/environment-broker/environment-broker/internal/failure"
	"github.com/environment-broker/environment-broker/process"
	"github.com/environment-broker/environment-broker/provisioner/operation"
	"github.com/environment-broker/environment-broker/provisioner/shoot"
)

// changeShoot returns the step that changes the Shoot to match the operation's order. asleep sets whether the cluster is
// hibernated; nil leaves the hibernation unchanged.
//
// The step reads the Shoot, then confirms the lease, and writes the Shoot only if it has not changed since it was read. A
// replica that froze after reading therefore cannot undo a later change.
func (o Options) changeShoot(asleep *bool) process.RunFunc[operation.Data] {
	return func(ctx context.Context, op operation.Operation, log logrus.FieldLogger) (operation.Operation, time.Duration, error) {
		runtime := op.Data.Runtime

		present, err := o.Shoots.Get(ctx, runtime.ShootName)
		if err != nil {
			return op, 0, err
		}

		if present.Annotations[shoot.AnnotationRuntimeID] != runtime.ID {
			return op, 0, failure.New(failure.Conflict, "the cluster %q belongs to another runtime", runtime.ShootName).
				WithReason(failure.ReasonConflict, failure.ComponentGardener)
		}

		objects, err := o.build(op)
		if err != nil {
			return op, 0, err
		}

		objects.Keep(present)

		if asleep != nil {
			objects.Shoot.Spec.Hibernation = &gardencorev1beta1.Hibernation{Enabled: asleep}
		}

		op.Data.Asleep = shoot.ToSleep(objects.Shoot)
		op.WaitingFor = operation.ShootEvent(runtime.ShootName)

		if err := op.Save(ctx); err != nil {
			return op, 0, failure.Wrap(failure.Transient, err, "storing the operation before changing the cluster failed")
		}

		if err := o.Shoots.Change(ctx, present, objects); err != nil {
			return op, 0, err
		}

		log.WithField("shoot", runtime.ShootName).Info("shoot changed")

		return op, 0, nil
	}
}
