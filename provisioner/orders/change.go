package orders

import (
	"context"
	"slices"

	"github.com/google/uuid"

	"github.com/environment-broker/environment-broker/internal/failure"
	"github.com/environment-broker/environment-broker/process"
	"github.com/environment-broker/environment-broker/provisioner/operation"
	"github.com/environment-broker/environment-broker/provisioner/spec"
	"github.com/environment-broker/environment-broker/storage"
	"github.com/environment-broker/environment-broker/storage/runtimes"
)

// edit gets the data of a new operation with the current runtime, and replaces the runtime in the data with its state after the
// operation. An edit runs in the transaction while the row of the runtime is locked, so it must not call other systems. If it
// returns an error, the operation is rejected.
type edit func(ctx context.Context, tx storage.Tx, data *operation.Data) error

// change accepts an operation on an existing runtime. Its error is failure.Conflict if the runtime cannot be changed (see
// changeable), and failure.NotFound if it does not exist or belongs to another tenant. A request with the same idempotency key as
// an earlier request returns the operation of the earlier request, even while this operation is in progress.
func (s *Service) change(ctx context.Context, caller Caller, runtimeID, kind string, edit edit) (operation.Status, error) {
	return s.transact(ctx, func(tx storage.Tx) (operation.Status, error) {
		// Lock before reading: otherwise the row could miss the result of an operation that is just ending.
		if err := s.Runtimes.Lock(ctx, tx, runtimeID); err != nil {
			return operation.Status{}, err
		}

		runtime, err := s.owned(ctx, tx, caller.Tenant, runtimeID)
		if err != nil {
			return operation.Status{}, err
		}

		operationID := uuid.NewString()

		repeated, err := s.remember(ctx, tx, caller, requestFor(runtimeID, kind), operationID)
		if err != nil {
			return operation.Status{}, err
		}

		if repeated != nil {
			return *repeated, nil
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

// unchanged is the edit for operations that do not change the order.
func unchanged(context.Context, storage.Tx, *operation.Data) error { return nil }

// changeable returns failure.Conflict if the runtime has been removed or has no cluster, if its last operation has not ended, or
// if its removal has failed. past lists the operations of the runtime, newest first.
func changeable(runtime runtimes.Runtime, past []process.Record) error {
	refused := func(format string, args ...any) error {
		return failure.New(failure.Conflict, format, args...).WithReason(failure.ReasonConflict, failure.ComponentProvisioner)
	}

	switch {
	case !runtime.DeletedAt.IsZero():
		return refused("the runtime %s has been removed", runtime.ID)
	case len(past) > 0 && !past[0].State.Terminal():
		// Clients search the message for the words "in progress" and then try again.
		return refused("operation %s (%s) is in progress for the runtime %s: try again when it has ended",
			past[0].ID, operation.PublicKind(past[0].Kind), runtime.ID)
	case !hasCluster(runtime, past):
		return refused("the runtime %s has no cluster, because its creation failed: provision it again", runtime.ID)
	case operation.Deprovisions(past[0].Kind):
		return refused("the removal of the runtime %s has failed: deprovision it again", runtime.ID)
	default:
		return nil
	}
}

// hasCluster reports whether the runtime's cluster was created and is not recorded as deleted.
func hasCluster(runtime runtimes.Runtime, past []process.Record) bool {
	return runtime.DeletedAt.IsZero() && slices.ContainsFunc(past, func(record process.Record) bool {
		return operation.Provisions(record.Kind) && record.State == process.Succeeded
	})
}

// reorder replaces the order in the data of the operation. The row of the runtime contains the previous order until the
// operation has succeeded, so a failed operation leaves nothing to restore.
func reorder(data *operation.Data, order spec.Runtime) error {
	configuration, err := spec.Encode(order)
	if err != nil {
		return failure.Wrap(failure.Internal, err, "the upgrade cannot be encoded")
	}

	data.Runtime.Configuration = configuration

	return nil
}
