package processes

import (
	"context"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/environment-broker/environment-broker/provisioner/operation"
)

// tidy deletes objects that the changed Shoot no longer refers to, such as the ConfigMap of an earlier identity provider. It runs
// after Gardener has reconciled the change: until then Gardener may still read the objects.
func (o Options) tidy(ctx context.Context, op operation.Operation, _ logrus.FieldLogger,
) (operation.Operation, time.Duration, error) {
	present, err := o.Shoots.Get(ctx, op.Data.Runtime.ShootName)
	if err != nil {
		return op, 0, err
	}

	return op, 0, o.Shoots.Tidy(ctx, op.Data.Runtime.ID, present)
}
