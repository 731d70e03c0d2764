package runtimes

import (
	"context"
	"encoding/json"

	"github.com/google/uuid"

	"github.com/environment-broker/environment-broker/internal/failure"
	"github.com/environment-broker/environment-broker/process"
	"github.com/environment-broker/environment-broker/provisioner/graph"
	"github.com/environment-broker/environment-broker/provisioner/graph/model"
	"github.com/environment-broker/environment-broker/provisioner/operation"
	"github.com/environment-broker/environment-broker/provisioner/validation"
	"github.com/environment-broker/environment-broker/storage"
	"github.com/environment-broker/environment-broker/storage/runtimes"
)

// UpgradeShoot implements graph.Runtimes. What the cluster is to be stands in the operation; the runtime's row tells what it was until
// the operation has succeeded.
func (s *Service) UpgradeShoot(ctx context.Context, caller graph.Caller, runtimeID string, upgrade model.UpgradeShootInput,
) (model.OperationStatus, error) {
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

// reorder has the operation leave the runtime as ordered.
func reorder(data *operation.Data, order model.ProvisionRuntimeInput) error {
	configuration, err := json.Marshal(order)
	if err != nil {
		return failure.Wrap(failure.Internal, err, "the upgrade cannot be encoded")
	}

	data.Runtime.Configuration = configuration

	return nil
}

// wanted makes of the data of a new operation, which has the runtime as it is, what the operation is to do.
type wanted func(ctx context.Context, tx storage.Tx, data *operation.Data) error

// change accepts an operation that changes a runtime that is there, unless another one is at work on it.
func (s *Service) change(ctx context.Context, caller graph.Caller, runtimeID, kind string, wanted wanted) (model.OperationStatus, error) {
	operationID := uuid.NewString()

	err := s.DB.InTx(ctx, func(tx storage.Tx) error {
		// What is read after the lock is what the last operation has recorded.
		if err := s.Runtimes.Lock(ctx, tx, runtimeID); err != nil {
			return err
		}

		runtime, err := s.owned(ctx, tx, caller.Tenant, runtimeID)
		if err != nil {
			return err
		}

		known, err := s.Runtimes.Remember(ctx, tx, caller.Tenant, caller.IdempotencyKey, operationID, s.Clock.Now())
		if err != nil {
			return err
		}

		if known != operationID {
			operationID = known

			return s.answers(ctx, tx, known, requestFor(runtimeID, kind))
		}

		past, err := s.Operations.OfInstance(ctx, tx, runtimeID)
		if err != nil {
			return err
		}

		if err := changeable(runtime, past); err != nil {
			return err
		}

		data := operation.Data{Runtime: runtime}
		if err := wanted(ctx, tx, &data); err != nil {
			return err
		}

		return s.accept(ctx, tx, operationID, kind, data)
	})
	if err != nil {
		return model.OperationStatus{}, unavailable(err)
	}

	s.Wake()

	return s.OperationStatus(ctx, caller, operationID)
}

// changeable refuses a runtime that has no cluster, or whose cluster another operation is at work on.
func changeable(runtime runtimes.Runtime, past []process.Record) error {
	refused := func(format string, args ...any) error {
		return failure.New(failure.Conflict, format, args...).WithReason(failure.ReasonConflict, failure.ComponentProvisioner)
	}

	switch {
	case !runtime.DeletedAt.IsZero():
		return refused("the runtime %s is removed", runtime.ID)
	case len(past) > 0 && !past[0].State.Terminal():
		// Clients recognise this one by its words and try again.
		return refused("operation %s (%s) is in progress for the runtime %s: try again when it has ended",
			past[0].ID, typeOf(past[0].Kind), runtime.ID)
	case !hasCluster(runtime, past):
		return refused("the runtime %s has no cluster, because its creation failed: provision it again", runtime.ID)
	case operation.Deprovisions(past[0].Kind):
		return refused("the removal of the runtime %s has begun and failed: deprovision it again", runtime.ID)
	default:
		return nil
	}
}
