package runtimes

import (
	"context"
	"slices"

	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"

	"github.com/environment-broker/environment-broker/internal/failure"
	"github.com/environment-broker/environment-broker/provisioner/graph"
	"github.com/environment-broker/environment-broker/provisioner/graph/model"
	"github.com/environment-broker/environment-broker/provisioner/operation"
	"github.com/environment-broker/environment-broker/storage"
)

// Hibernate implements graph.Runtimes.
func (s *Service) Hibernate(ctx context.Context, caller graph.Caller, runtimeID string) (model.OperationStatus, error) {
	known, found, err := s.repeated(ctx, caller, requestFor(runtimeID, operation.KindHibernate))
	if err != nil || found {
		return known, err
	}

	runtime, err := s.owned(ctx, s.Runtimes.Reader(), caller.Tenant, runtimeID)
	if err != nil {
		return model.OperationStatus{}, err
	}

	shoot, err := s.Shoots.Get(ctx, runtime.ShootName)
	if err != nil && !failure.Is(err, failure.NotFound) { // the runtime's operations say why there is none
		return model.OperationStatus{}, err
	}

	if why := impediment(shoot); why != "" {
		return model.OperationStatus{}, failure.New(failure.Conflict, "the runtime %s cannot be hibernated now: %s", runtimeID, why).
			WithReason(failure.ReasonConflict, failure.ComponentGardener)
	}

	return s.change(ctx, caller, runtimeID, operation.KindHibernate, unchanged)
}

// WakeUp implements graph.Runtimes.
func (s *Service) WakeUp(ctx context.Context, caller graph.Caller, runtimeID string) (model.OperationStatus, error) {
	return s.change(ctx, caller, runtimeID, operation.KindWakeUp, unchanged)
}

func unchanged(context.Context, storage.Tx, *operation.Data) error { return nil }

// hibernation tells whether the cluster sleeps, and whether it could.
func (s *Service) hibernation(ctx context.Context, shootName string) (*model.HibernationStatus, error) {
	shoot, err := s.Shoots.Get(ctx, shootName)
	if err != nil {
		return nil, err
	}

	hibernated := shoot.Status.IsHibernated
	possible := !hibernated && impediment(shoot) == ""

	return &model.HibernationStatus{Hibernated: &hibernated, HibernationPossible: &possible}, nil
}

// impediment is why Gardener could not wake the cluster again if it slept, or empty.
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
