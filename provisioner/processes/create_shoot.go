package processes

import (
	"context"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/environment-broker/environment-broker/internal/failure"
	"github.com/environment-broker/environment-broker/provisioner/operation"
)

// createShoot applies the Shoot and the objects that it refers to. The name of the Shoot comes from the runtime's row, so a
// repeated run after a crash applies the same Shoot and does not create a second cluster.
func (o Options) createShoot(ctx context.Context, op operation.Operation, log logrus.FieldLogger,
) (operation.Operation, time.Duration, error) {
	runtime := op.Data.Runtime

	objects, err := o.build(op)
	if err != nil {
		return op, 0, err
	}

	op.WaitingFor = operation.ShootEvent(runtime.ShootName)

	// Save fails if the lease is lost. A replica that was frozen must not create a cluster after the cluster's removal has
	// ended.
	if err := op.Save(ctx); err != nil {
		return op, 0, failure.Wrap(failure.Transient, err, "storing the operation before creating the cluster failed")
	}

	if err := o.Shoots.Apply(ctx, objects); err != nil {
		return op, 0, err
	}

	log.WithField("shoot", runtime.ShootName).Info("shoot applied")

	return op, 0, nil
}
