package processes

import (
	"context"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/environment-broker/environment-broker/provisioner/operation"
)

// administrators returns the stage that grants the administrators their rights. The stage is skipped for a hibernated cluster,
// whose API server does not run; the process of the wake-up has the stage too.
func (o Options) administrators() stage {
	stage := within(o.Timeouts.Bindings, one("CreatingBindingsForOperators", "Set_Administrators", o.setAdministrators))
	stage.Steps[0].When = func(op operation.Operation) bool { return !op.Data.Asleep }

	return stage
}

// setAdministrators grants all rights in the cluster to the administrators of the order, and revokes the rights of
// administrators of earlier orders.
func (o Options) setAdministrators(ctx context.Context, op operation.Operation, log logrus.FieldLogger,
) (operation.Operation, time.Duration, error) {
	order, err := op.Data.Order()
	if err != nil {
		return op, 0, err
	}

	users := order.ClusterConfig.Administrators
	if err := o.Clusters.SetAdministrators(ctx, op.Data.Runtime.ShootName, users); err != nil {
		return op, 0, err
	}

	log.WithField("administrators", len(users)).Info("administrators set")

	return op, 0, nil
}
