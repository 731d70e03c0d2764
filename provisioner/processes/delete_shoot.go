package processes

import (
	"context"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/environment-broker/environment-broker/provisioner/operation"
)

// deleteShoot requests the deletion of the cluster.
func (o Options) deleteShoot(ctx context.Context, op operation.Operation, _ logrus.FieldLogger,
) (operation.Operation, time.Duration, error) {
	runtime := op.Data.Runtime
	op.WaitingFor = operation.ShootEvent(runtime.ShootName)

	return op, 0, o.Shoots.Delete(ctx, runtime.ShootName, runtime.ID)
}
