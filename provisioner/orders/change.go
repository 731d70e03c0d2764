package orders

import (
	"context"

	"github.com/google/uuid"

	"github.com/environment-broker/environment-broker/internal/failure"
	"github.com/environment-broker/environment-broker/process"
	"github.com/environment-broker/environment-broker/provisioner/operation"
	"github.com/environment-broker/environment-broker/provisioner/spec"
	"github.com/environment-broker/environment-broker/storage"
	"github.com/environment-broker/environment-broker/storage/runtimes"
)

// edit adapts the data of a new operation. On entry the data holds the present runtime, on return the runtime as the operation
// will leave it. It runs in the transaction, after the lock: an error refuses the operation.
type edit func(ctx context.Context, tx storage.Tx, data *operation.Data) error

// change accepts an operation on an existing runtime. It returns failure.Conflict if the runtime has no cluster or another
// operation is in progress, and failure.NotFound for a runtime of another tenant.
func (s *Service) change(ctx context.Context, caller Caller, runtimeID, kind string, edit edit) (operation.Status, error) {
	return s.transact(ctx, func(tx storage.Tx) (operation.Status, error) {
		// Lock first: then the row holds what the last operation recorded.
		if err := s.Runtimes.Lock(ctx, tx, runtimeID); err != nil {
			return operation.Status{}, err
		}

		runtime, err := s.owned(ctx, tx, caller.Tenant, runtimeID)
		if err != nil {
			return operation.Status{}, err
		}

		operationID := uuid.NewString()

		known, err := s.remember(ctx, tx, caller, requestFor(runtimeID, kind), operationID)
		if err != nil {
			return operation.Status{}, err
		}

		if known != nil {
			return *known, nil
		}

		past, err := s.Operations.OfInstance(ctx, tx, runtimeID)
		if err != nil {
			return operation.Status{}, err
		}

		if err := changeable(runtime, past); err != nil {
			return operation.Status{}, err
		}

		data := operation.Data{Runtime: runtime}
		if err := edit(ctx, tx, &data); err != nil {
			return operation.Status{}, err
		}

		return s.accept(ctx, tx, operationID, kind, data)
	})
}

// unchanged is the edit of operations that leave the order as it is.
func unchanged(context.Context, storage.Tx, *operation.Data) error { return nil }

// changeable refuses a runtime that has no cluster, or on whose cluster another operation works.
func changeable(runtime runtimes.Runtime, past []process.Record) error {
	refused := func(format string, args ...any) error {
		return failure.New(failure.Conflict, format, args...).WithReason(failure.ReasonConflict, failure.ComponentProvisioner)
	}

	switch {
	case !runtime.DeletedAt.IsZero():
		return refused("the runtime %s is removed", runtime.ID)
	case len(past) > 0 && !past[0].State.Terminal():
		// Clients recognise this one by "in progress" and try again.
		return refused("operation %s (%s) is in progress for the runtime %s: try again when it has ended",
			past[0].ID, operation.PublicKind(past[0].Kind), runtime.ID)
	case !hasCluster(runtime, past):
		return refused("the runtime %s has no cluster, because its creation failed: provision it again", runtime.ID)
	case operation.Deprovisions(past[0].Kind):
		return refused("the removal of the runtime %s has started and failed: deprovision it again", runtime.ID)
	default:
		return nil
	}
}

// hasCluster reports whether the cluster of the runtime was created and still exists.
func hasCluster(runtime runtimes.Runtime, past []process.Record) bool {
	if !runtime.DeletedAt.IsZero() {
		return false
	}

	for _, record := range past {
		if operation.Provisions(record.Kind) && record.State == process.Succeeded {
			return true
		}
	}

	return false
}

// reorder replaces the order in the data of the operation. The row of the runtime keeps the present order until the operation has
// succeeded.
func reorder(data *operation.Data, order spec.Runtime) error {
	configuration, err := spec.Encode(order)
	if err != nil {
		return failure.Wrap(failure.Internal, err, "the upgrade cannot be encoded")
	}

	data.Runtime.Configuration = configuration

	return nil
}
