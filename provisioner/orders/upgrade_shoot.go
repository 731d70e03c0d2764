package orders

import (
	"context"

	"github.com/environment-broker/environment-broker/provisioner/operation"
	"github.com/environment-broker/environment-broker/provisioner/spec"
	"github.com/environment-broker/environment-broker/provisioner/validation"
	"github.com/environment-broker/environment-broker/storage"
)

// UpgradeShoot accepts the upgrade of a cluster. The operation stores the upgraded order; the row of the runtime contains the
// previous order until the operation has succeeded. The error is failure.Invalid for a change that Gardener would reject, such
// as other zones or a lower Kubernetes version. A hibernated cluster can be upgraded.
func (s *Service) UpgradeShoot(ctx context.Context, caller Caller, runtimeID string, upgrade spec.Upgrade,
) (operation.Status, error) {
	return s.change(ctx, caller, runtimeID, operation.KindUpgradeShoot, func(_ context.Context, _ storage.Tx, data *operation.Data) error {
		order, err := data.Order()
		if err != nil {
			return err
		}

		upgraded, err := validation.UpgradeShoot(*order.ClusterConfig, upgrade)
		if err != nil {
			return err
		}

		order.ClusterConfig = &upgraded

		if err := reorder(data, order); err != nil {
			return err
		}

		return s.Check(data.Runtime)
	})
}
