package processes

import (
	"context"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/environment-broker/environment-broker/process"
	"github.com/environment-broker/environment-broker/provisioner/operation"
)

// administrators returns the stage that makes the administrators cluster-admins. The stage is skipped for a hibernated cluster,
// which has no running API server. The wake-up process contains the stage too.
func (o Options) administrators() stage {
	stage := within(o.Timeouts.Bindings, one("CreatingBindingsForOperators", "Set_Administrators", o.setAdministrators, process.Notes{
		Does:   "Makes exactly the administrators of the order cluster-admins.",
		System: systemRuntime, Creates: "the ClusterRoleBinding environment-broker-administrators in the runtime",
	}))
	stage.Steps[0].When = process.Condition[operation.Data]{
		Text: "not hibernated", Holds: func(op operation.Operation) bool { return !op.Data.Asleep },
	}

	return stage
}

// setAdministrators makes the order's administrators cluster-admins, and revokes the role from administrators of earlier orders. Like
// changeShoot, it cannot undo a later change: a replica that froze must not make somebody cluster-admin whose role was revoked meanwhile.
func (o Options) setAdministrators(ctx context.Context, op operation.Operation, log logrus.FieldLogger,
) (operation.Operation, time.Duration, error) {
	order, err := op.Data.Order()
	if err != nil {
		return op, 0, err
	}

	users := order.ClusterConfig.Administrators
	if err := o.Clusters.SetAdministrators(ctx, op.Data.Runtime.ShootName, users, func(ctx context.Context) error {
		return confirm(ctx, op)
	}); err != nil {
		return op, 0, err
	}

	log.WithField("administrators", len(users)).Info("administrators set")

	return op, 0, nil
}
