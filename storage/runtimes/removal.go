package runtimes

import (
	"context"

	"github.com/environment-broker/environment-broker/internal/failure"
	"github.com/environment-broker/environment-broker/storage"
)

// Present returns those of the given IDs that belong to runtimes that are not deleted.
func (s *Store) Present(ctx context.Context, tx storage.Tx, ids []string) ([]string, error) {
	found, err := storage.Select[string](ctx, tx, `SELECT id FROM runtimes WHERE id IN (?) AND deleted_at IS NULL`, ids)

	return found, failure.While(err, "finding runtimes")
}

// UnreportedAmong returns those of the given operation IDs that belong to a registration, unless a failure of the operation was
// already reported to Director.
func (s *Store) UnreportedAmong(ctx context.Context, tx storage.Tx, operationIDs []string) ([]string, error) {
	found, err := storage.Select[string](ctx, tx,
		`SELECT operation_id FROM registrations WHERE operation_id IN (?) AND NOT failure_told`, operationIDs)

	return found, failure.While(err, "finding failures to report to Director")
}

// Forget removes the idempotency keys of the given operations, in the transaction that removes the operations. It also removes those of
// the given runtimes that are deleted. The runtimes must have no operations left.
func (s *Store) Forget(ctx context.Context, tx storage.Tx, operationIDs, runtimeIDs []string) error {
	_, err := storage.Exec(ctx, tx, `DELETE FROM idempotency_keys WHERE operation_id IN (?)`, operationIDs)
	if err == nil && len(runtimeIDs) > 0 {
		_, err = storage.Exec(ctx, tx, `DELETE FROM runtimes WHERE id IN (?) AND deleted_at IS NOT NULL`, runtimeIDs)
	}

	return failure.While(err, "removing the rows of old operations")
}
