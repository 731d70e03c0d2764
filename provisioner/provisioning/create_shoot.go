package provisioning

import (
	"context"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/environment-broker/environment-broker/internal/failure"
	"github.com/environment-broker/environment-broker/provisioner/operation"
)

// createShoot applies the Shoot. Its name stands in the runtime's row, so however often this runs there is one.
type createShoot struct {
	shoots Shoots
	build  BuildShoot
}

// Name implements process.Step.
func (createShoot) Name() string { return "Create_Shoot" }

// Run implements process.Step.
func (s createShoot) Run(ctx context.Context, op operation.Operation, log logrus.FieldLogger,
) (operation.Operation, time.Duration, error) {
	runtime := op.Data.Runtime

	objects, err := s.build(runtime, op.ID)
	if err != nil {
		return op, 0, err
	}

	op.WaitingFor = operation.ShootEvent(runtime.ShootName)

	// Fails when the lease is lost: a replica that was frozen must not make what has been removed since.
	if err := op.Save(ctx); err != nil {
		return op, 0, failure.Wrap(failure.Transient, err, "the operation could not be stored before the cluster is ordered")
	}

	if err := s.shoots.Apply(ctx, objects); err != nil {
		return op, 0, err
	}

	log.WithField("shoot", runtime.ShootName).Info("shoot applied")

	return op, 0, nil
}
