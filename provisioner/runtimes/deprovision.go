package runtimes

import (
	"context"

	"github.com/google/uuid"

	"github.com/environment-broker/environment-broker/process"
	"github.com/environment-broker/environment-broker/provisioner/graph"
	"github.com/environment-broker/environment-broker/provisioner/operation"
	"github.com/environment-broker/environment-broker/storage"
)

// Deprovision implements graph.Runtimes. What else runs for the runtime is cancelled at its next safe point, the removal follows.
// While the runtime is being removed, or is gone, the answer is the operation that does or did it.
func (s *Service) Deprovision(ctx context.Context, caller graph.Caller, runtimeID string) (string, error) {
	operationID := uuid.NewString()

	err := s.DB.InTx(ctx, func(tx storage.Tx) error {
		runtime, err := s.owned(ctx, tx, caller.Tenant, runtimeID)
		if err != nil {
			return err
		}

		if err := s.Runtimes.Lock(ctx, tx, runtimeID); err != nil {
			return err
		}

		past, err := s.Operations.OfInstance(ctx, tx, runtimeID)
		if err != nil {
			return err
		}

		removed := len(past) > 0 && removes(past[0])
		if removed {
			operationID = past[0].ID
		}

		now := s.Clock.Now()

		known, err := s.Runtimes.Remember(ctx, tx, caller.Tenant, caller.IdempotencyKey, operationID, now)
		if err != nil {
			return err
		}

		if removed || known != operationID {
			operationID = known

			return s.answers(ctx, tx, known, request{runtimeID: runtimeID, does: operation.Deprovisions})
		}

		if _, err := s.Operations.Cancel(ctx, tx, runtimeID, "the runtime is to be deprovisioned", now); err != nil {
			return err
		}

		kind, err := kindFor(runtime, operation.KindDeprovision, operation.KindDeprovisionNoInstall)
		if err != nil {
			return err
		}

		return s.accept(ctx, tx, operationID, kind, operation.Data{Runtime: runtime})
	})
	if err != nil {
		return "", unavailable(err)
	}

	s.Wake()

	return operationID, nil
}

// removes reports whether the operation removes its runtime, or has done so.
func removes(record process.Record) bool {
	return operation.Deprovisions(record.Kind) && record.State != process.Failed && record.State != process.Canceled
}
