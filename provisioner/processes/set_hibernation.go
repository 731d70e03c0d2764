package processes

import (
	"context"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/environment-broker/environment-broker/process"
	"github.com/environment-broker/environment-broker/provisioner/operation"
	"github.com/environment-broker/environment-broker/provisioner/shoot"
)

// setHibernation returns the step that makes Gardener hibernate the cluster or wake it up. It changes nothing else in the spec of the
// Shoot: after a failed or canceled upgrade, the Shoot may match neither the order of the runtime nor the order of the upgrade.
// Like changeShoot, it cannot undo a later change.
func (o Options) setHibernation(asleep bool) process.RunFunc[operation.Data] {
	return func(ctx context.Context, op operation.Operation, log logrus.FieldLogger) (operation.Operation, time.Duration, error) {
		present, err := o.present(ctx, op)
		if err != nil {
			return op, 0, err
		}

		annotations := map[string]string{
			shoot.AnnotationOperationID: op.ID, shoot.AnnotationLegacyOperationID: op.ID, shoot.AnnotationTraceparent: "",
		}
		if o.Traceparent != nil {
			annotations[shoot.AnnotationTraceparent] = o.Traceparent(op.Record)
		}

		op.Data.Asleep = asleep
		op.WaitingFor = operation.ShootEvent(present.Name)

		if err := confirm(ctx, op); err != nil {
			return op, 0, err
		}

		if err := o.Shoots.SetHibernation(ctx, present, asleep, annotations); err != nil {
			return op, 0, err
		}

		log.WithField("shoot", present.Name).Info("hibernation of the shoot changed")

		return op, 0, nil
	}
}
