package processes

import (
	"context"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/environment-broker/environment-broker/provisioner/operation"
)

// deleteShoot requests the deletion of the cluster. It does nothing if the Shoot is gone or belongs to another runtime. The
// step does not confirm the lease, because the late request of a frozen replica only repeats the deletion.
func (o Options) deleteShoot(ctx context.Context, op operation.Operation, _ logrus.FieldLogger,
) (operation.Operation, time.Duration, error) {
	runtime := op.Data.Runtime
	op.WaitingFor = operation.ShootEvent(runtime.ShootName)

	return op, 0, o.Shoots.Delete(ctx, runtime.ShootName, runtime.ID)
}
