package orders

import (
	"cmp"
	"context"
	"errors"

	"github.com/google/uuid"

	"github.com/environment-broker/environment-broker/internal/failure"
	"github.com/environment-broker/environment-broker/process"
	"github.com/environment-broker/environment-broker/provisioner/operation"
	"github.com/environment-broker/environment-broker/storage"
)

// Deprovision accepts the removal of a runtime and returns the ID of the operation. It also cancels the running operation, which
// stops at its next safe point; the removal starts afterwards. While a removal is in progress or after it has succeeded,
// Deprovision returns the operation of that removal, whatever the idempotency key. After a failed removal it accepts a new one,
// because the cluster may still exist.
//
// For an unknown runtime whose Shoot exists, the error is a failure.Conflict: the caller must not assume that the runtime was
// removed.
func (s *Service) Deprovision(ctx context.Context, caller Caller, runtimeID string) (string, error) {
	wanted := request{runtimeID: runtimeID, fulfilledBy: operation.Deprovisions}

	status, err := s.transact(ctx, func(tx storage.Tx) (operation.Status, error) {
		runtime, err := s.owned(ctx, tx, caller.Tenant, runtimeID)
		if err != nil {
			return operation.Status{}, err
		}

		if err := s.Runtimes.Lock(ctx, tx, runtimeID); err != nil {
			return operation.Status{}, err
		}

		past, err := s.Operations.OfInstance(ctx, tx, runtimeID)
		if err != nil {
			return operation.Status{}, err
		}

		operationID, removed := uuid.NewString(), len(past) > 0 && removes(past[0])
		if removed {
			operationID = past[0].ID
		}

		repeated, err := s.remember(ctx, tx, caller, wanted, operationID)

		switch {
		case err != nil:
			return operation.Status{}, err
		case repeated != nil:
			return *repeated, nil
		case removed:
			return operation.StatusOf(past[0]), nil
		}

		if _, err := s.Operations.Cancel(ctx, tx, runtimeID, "the runtime is being deprovisioned", s.Clock.Now()); err != nil {
			return operation.Status{}, err
		}

		kind, err := kindFor(runtime, operation.KindDeprovision, operation.KindDeprovisionNoInstall)
		if err != nil {
			return operation.Status{}, err
		}

		return s.accept(ctx, tx, operationID, kind, operation.Data{Runtime: runtime})
	})

	if failure.Is(err, failure.NotFound) {
		err = s.checkForeignShoot(ctx, runtimeID, err)
	}

	return status.ID, err
}

// checkForeignShoot returns a failure.Conflict if a Shoot exists for a runtime without a row: another Provisioner created it, or
// the database was lost. Otherwise, including for a runtime of another tenant, it returns the given error, which reports an
// unknown runtime.
func (s *Service) checkForeignShoot(ctx context.Context, runtimeID string, unknown error) error {
	if _, err := s.Runtimes.Get(ctx, s.Runtimes.Reader(), runtimeID); err == nil || !errors.Is(err, storage.ErrNotFound) {
		return cmp.Or(unavailable(err), unknown)
	}

	name, err := s.OfRuntime(ctx, runtimeID)
	if err != nil || name == "" {
		return cmp.Or(err, unknown)
	}

	return failure.New(failure.Conflict, "the database of this Provisioner does not contain the runtime %s, but its Shoot %q exists: "+
		"delete the Shoot in Gardener, or restore the database that contains the runtime", runtimeID, name).
		WithReason(failure.ReasonNotAdopted, failure.ComponentProvisioner)
}

// removes reports whether the operation is a removal that is pending, running or successful.
func removes(record process.Record) bool {
	return operation.Deprovisions(record.Kind) && record.State != process.Failed && record.State != process.Canceled
}
