package processes

import (
	"context"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/environment-broker/environment-broker/provisioner/operation"
)

// tidy deletes objects that the Shoot referred to before the change and no longer does, such as the ConfigMap of an earlier
// identity provider. It runs after Gardener has applied the change.
func (o Options) tidy(ctx context.Context, op operation.Operation, _ logrus.FieldLogger,
) (operation.Operation, time.Duration, error) {
	present, err := o.Shoots.Get(ctx, op.Data.Runtime.ShootName)
	if err != nil {
		return op, 0, err
	}

	return op, 0, o.Shoots.Tidy(ctx, op.Data.Runtime.ID, present)
}
