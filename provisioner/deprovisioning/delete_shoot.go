package deprovisioning

import (
	"context"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/environment-broker/environment-broker/provisioner/operation"
)

// deleteShoot asks Gardener to remove the cluster.
type deleteShoot struct {
	shoots Shoots
}

// Name implements process.Step.
func (deleteShoot) Name() string { return "Delete_Shoot" }

// Run implements process.Step.
func (s deleteShoot) Run(ctx context.Context, op operation.Operation, _ logrus.FieldLogger,
) (operation.Operation, time.Duration, error) {
	runtime := op.Data.Runtime
	op.WaitingFor = operation.ShootEvent(runtime.ShootName)

	return op, 0, s.shoots.Delete(ctx, runtime.ShootName, runtime.ID)
}
