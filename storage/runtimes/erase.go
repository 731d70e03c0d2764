package runtimes

import (
	"context"

	"github.com/environment-broker/environment-broker/internal/failure"
	"github.com/environment-broker/environment-broker/storage"
)

// OfTenant returns at most limit runtimes of the tenant that are not deleted, without their configurations.
func (s *Store) OfTenant(ctx context.Context, tx storage.Tx, tenant string, limit int) ([]Runtime, error) {
	rows, err := storage.Select[row](ctx, tx, `SELECT `+listedColumns+` FROM runtimes
		WHERE tenant = ? AND deleted_at IS NULL ORDER BY id `+storage.Page(limit, 0), tenant)

	found := make([]Runtime, 0, len(rows))
	for _, row := range rows {
		found = append(found, row.runtime())
	}

	return found, failure.While(err, "listing the runtimes of tenant %s", tenant)
}

// CountDeleted returns the number of deleted runtimes of the tenant.
func (s *Store) CountDeleted(ctx context.Context, tenant string) (int, error) {
	count, err := storage.Get[int](ctx, s.db.Reader(), `SELECT COUNT(*) FROM runtimes WHERE tenant = ? AND deleted_at IS NOT NULL`, tenant)

	return count, failure.While(err, "counting deleted runtimes")
}

// EraseDeleted removes at most limit deleted runtimes of the tenant and their idempotency keys, in the caller's transaction, and
// returns the number of removed runtimes.
func (s *Store) EraseDeleted(ctx context.Context, tx storage.Tx, tenant string, limit int) (int, error) {
	ids, err := storage.Select[string](ctx, tx, `SELECT id FROM runtimes WHERE tenant = ? AND deleted_at IS NOT NULL
		ORDER BY id `+storage.Page(limit, 0)+s.db.ForUpdate(), tenant)
	if err != nil || len(ids) == 0 {
		return 0, failure.While(err, "finding deleted runtimes")
	}

	for _, statement := range []string{
		`DELETE FROM idempotency_keys WHERE tenant = ? AND operation_id IN (SELECT id FROM operations WHERE instance_id IN (?))`,
		`DELETE FROM runtimes WHERE tenant = ? AND id IN (?)`,
	} {
		if _, err := storage.Exec(ctx, tx, statement, tenant, ids); err != nil {
			return 0, failure.While(err, "erasing deleted runtimes")
		}
	}

	return len(ids), nil
}
