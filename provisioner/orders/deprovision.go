package orders

import (
	"context"

	"github.com/google/uuid"

	"github.com/environment-broker/environment-broker/process"
	"github.com/environment-broker/environment-broker/provisioner/operation"
	"github.com/environment-broker/environment-broker/storage"
)

// Deprovision accepts the removal of a runtime and returns the ID of the operation. It also cancels the running operation,
// which stops at its next safe point; the removal starts after that. During and after a removal it returns the operation of
// that removal for any key. After a failed removal it accepts a new one, since a cluster may be left.
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

		known, err := s.remember(ctx, tx, caller, wanted, operationID)

		switch {
		case err != nil:
			return operation.Status{}, err
		case known != nil:
			return *known, nil
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

	return status.ID, err
}

// removes reports whether the operation is a removal that is pending, running or successful.
func removes(record process.Record) bool {
	return operation.Deprovisions(record.Kind) && record.State != process.Failed && record.State != process.Canceled
}
