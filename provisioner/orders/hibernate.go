package orders

import (
	"context"
	"slices"

	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"

	"github.com/environment-broker/environment-broker/internal/failure"
	"github.com/environment-broker/environment-broker/provisioner/operation"
)

// Hibernate accepts the hibernation of a cluster. Gardener stops the machines and the control plane, and preserves the volumes.
// The error is failure.Conflict if Gardener reports a constraint that would prevent a later wake-up, for example a webhook in
// the cluster.
func (s *Service) Hibernate(ctx context.Context, caller Caller, runtimeID string) (operation.Status, error) {
	return s.once(ctx, caller, requestFor(runtimeID, operation.KindHibernate), func() (operation.Status, error) {
		runtime, err := s.owned(ctx, s.Runtimes.Reader(), caller.Tenant, runtimeID)
		if err != nil {
			return operation.Status{}, err
		}

		shoot, err := s.Shoots.Get(ctx, runtime.ShootName)
		if err != nil && !failure.Is(err, failure.NotFound) { // without a Shoot, change rejects the request and says why
			return operation.Status{}, err
		}

		if why := impediment(shoot); why != "" {
			return operation.Status{}, failure.New(failure.Conflict, "the runtime %s cannot be hibernated now: %s", runtimeID, why).
				WithReason(failure.ReasonConflict, failure.ComponentGardener)
		}

		return s.change(ctx, caller, runtimeID, operation.KindHibernate, unchanged)
	})
}

// WakeUp accepts the wake-up of a hibernated cluster. Clients see the operation as UpgradeShoot, because Kyma Provisioner has
// no kind for a wake-up.
func (s *Service) WakeUp(ctx context.Context, caller Caller, runtimeID string) (operation.Status, error) {
	return s.change(ctx, caller, runtimeID, operation.KindWakeUp, unchanged)
}

// addShoot reads the Shoot and adds the hibernation status and the maintenance window to the status, if the request selects them.
func (s *Service) addShoot(ctx context.Context, shootName string, want RuntimeFields, status *RuntimeStatus) error {
	if !want.Hibernation && !want.Maintenance {
		return nil
	}

	shoot, err := s.Shoots.Get(ctx, shootName)
	if err != nil {
		return err
	}

	if want.Hibernation {
		status.Hibernation = &Hibernation{
			Hibernated: shoot.Status.IsHibernated,
			Possible:   !shoot.Status.IsHibernated && impediment(shoot) == "",
		}
	}

	if maintenance := shoot.Spec.Maintenance; want.Maintenance && maintenance != nil && maintenance.TimeWindow != nil {
		status.Maintenance = &MaintenanceWindow{Begin: maintenance.TimeWindow.Begin, End: maintenance.TimeWindow.End}
	}

	return nil
}

// impediment returns the reason why Gardener could not wake up the cluster after a hibernation. It returns "" if there is none,
// or if Gardener has not yet reported the HibernationPossible condition.
func impediment(shoot *gardencorev1beta1.Shoot) string {
	if shoot == nil {
		return ""
	}

	found := slices.IndexFunc(shoot.Status.Constraints, func(constraint gardencorev1beta1.Condition) bool {
		return constraint.Type == gardencorev1beta1.ShootHibernationPossible && constraint.Status == gardencorev1beta1.ConditionFalse
	})
	if found < 0 {
		return ""
	}

	return shoot.Status.Constraints[found].Message
}
