package runtimes

import (
	"context"

	"github.com/environment-broker/environment-broker/internal/failure"
	"github.com/environment-broker/environment-broker/storage"
)

// Present returns the given IDs that belong to runtimes that are not deleted.
func (s *Store) Present(ctx context.Context, tx storage.Tx, ids []string) ([]string, error) {
	found, err := storage.Select[string](ctx, tx, `SELECT id FROM runtimes WHERE id IN (?) AND deleted_at IS NULL`, ids)

	return found, failure.While(err, "finding runtimes")
}

// UnreportedAmong returns the given operation IDs that belong to a registration, except the IDs of failed operations
// whose failure was already reported to Director.
func (s *Store) UnreportedAmong(ctx context.Context, tx storage.Tx, operationIDs []string) ([]string, error) {
	found, err := storage.Select[string](ctx, tx,
		`SELECT operation_id FROM registrations WHERE operation_id IN (?) AND NOT failure_told`, operationIDs)

	return found, failure.While(err, "finding the failures that must be reported to Director")
}

// Forget removes the idempotency keys of the given operations, in the transaction that removes these operations. It also removes
// the rows of the given runtimes if these are deleted. These runtimes must have no operations left.
func (s *Store) Forget(ctx context.Context, tx storage.Tx, operationIDs, runtimeIDs []string) error {
	_, err := storage.Exec(ctx, tx, `DELETE FROM idempotency_keys WHERE operation_id IN (?)`, operationIDs)
	if err == nil && len(runtimeIDs) > 0 {
		_, err = storage.Exec(ctx, tx, `DELETE FROM runtimes WHERE id IN (?) AND deleted_at IS NOT NULL`, runtimeIDs)
	}

	return failure.While(err, "removing the rows of old operations")
}
