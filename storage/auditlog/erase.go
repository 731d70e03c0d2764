package auditlog

import (
	"context"

	"github.com/environment-broker/environment-broker/internal/failure"
	"github.com/environment-broker/environment-broker/storage"
)

// erasable returns the condition that selects the entries about an account that have not been erased, and its arguments. It never selects
// the entries of erasures.
//
// An entry names its account only if nothing else identifies the account. Otherwise, the account of the entry's operation or
// instance applies. Several accounts may have used the same instance ID one after the other. Therefore, the account of an
// instance is taken from its newest operation before the entry or, if the entry is older than all operations, from its first
// operation.
func erasable(account string) (string, []any) {
	const ended = `FROM operations WHERE tenant = ? AND finished_at IS NOT NULL`

	return `id IN (
		SELECT id FROM audit WHERE account = ? AND account <> ''
		UNION ALL
		SELECT id FROM audit WHERE account = '' AND instance_id = '' AND operation_id IN (SELECT id ` + ended + `)
		UNION ALL
		SELECT id FROM audit WHERE account = '' AND instance_id <> '' AND instance_id IN (SELECT instance_id ` + ended + `)
			AND COALESCE(
				(SELECT tenant FROM operations WHERE operations.instance_id = audit.instance_id AND operations.created_at <= audit.at
					ORDER BY operations.position DESC LIMIT 1),
				(SELECT tenant FROM operations WHERE operations.instance_id = audit.instance_id ORDER BY operations.position LIMIT 1)
			) = ?
	) AND erased_by = '' AND action <> '` + ActionErase + `'`, []any{account, account, account, account}
}

// Erasable returns the IDs of at most limit entries about the account that have not been erased. It locks these entries until the
// caller's transaction ends, in the order of their IDs. It does not return the entries of operations, because operations.Store
// erases them together with the operations.
func (s *Store) Erasable(ctx context.Context, tx storage.Tx, account string, limit int) ([]string, error) {
	condition, args := erasable(account)

	ids, err := storage.Select[string](ctx, tx,
		`SELECT id FROM audit WHERE `+condition+` ORDER BY id `+storage.Page(limit, 0)+s.db.ForUpdate(), args...)

	return ids, failure.While(err, "finding audit log entries to erase")
}

// CountErasable returns the number of entries whose data an erasure of the account would remove.
func (s *Store) CountErasable(ctx context.Context, account string) (int, error) {
	condition, args := erasable(account)

	count, err := storage.Get[int](ctx, s.db.Reader(), `SELECT COUNT(*) FROM audit WHERE `+condition, args...)

	return count, failure.While(err, "counting audit log entries to erase")
}

// Erase removes data from the entries in the caller's transaction. Only the ID, time, action, status, account, instance, operation
// and retention period of each entry stay. erasureID is the ID of the entry about the erasure, which the transaction must already
// have inserted.
func (s *Store) Erase(ctx context.Context, tx storage.Tx, ids []string, erasureID string) error {
	if len(ids) == 0 {
		return nil
	}

	_, err := storage.Exec(ctx, tx, `UPDATE audit SET ordered_by = '', entry = '{}', erased_by = ? WHERE id IN (?)`, erasureID, ids)

	return failure.While(err, "erasing audit log entries")
}

// Erased reports whether an earlier erasure has removed data of the account.
func (s *Store) Erased(ctx context.Context, tx storage.Tx, account string) (bool, error) {
	found, err := storage.Select[int](ctx, tx, `SELECT 1 FROM audit
		WHERE account = ? AND account <> '' AND action = '`+ActionErase+`' AND status = 200 LIMIT 1`, account)

	return len(found) > 0, failure.While(err, "finding earlier erasures")
}
