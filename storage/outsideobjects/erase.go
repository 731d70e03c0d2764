package outsideobjects

import (
	"context"

	"github.com/environment-broker/environment-broker/internal/failure"
	"github.com/environment-broker/environment-broker/storage"
)

// orphaned is the SQL fragment that selects the records of the account's deleted instances. An account with leftovers cannot be
// erased, so no leftover refers to these records. They exist, for example, after a restore from a backup.
const orphaned = ` FROM outside_objects WHERE instance_id IN (SELECT instance_id FROM operations WHERE tenant = ? AND finished_at IS NOT NULL)
	AND NOT EXISTS (SELECT 1 FROM instances WHERE instances.id = outside_objects.instance_id)`

// orphanedConfigurations is the SQL fragment that selects the configurations of the same instances. Erase must remove them before
// it removes the records, which identify these instances.
const orphanedConfigurations = ` FROM outside_configurations WHERE id IN (SELECT instance_id` + orphaned + `)`

// CountErasable returns the number of records that an erasure of the account would remove. The operations and instances tables must
// exist.
func (s *Store) CountErasable(ctx context.Context, account string) (int, error) {
	count, err := storage.Get[int](ctx, s.db.Reader(), `SELECT count(*)`+orphaned, account)

	return count, failure.While(err, "counting the objects of account %s in other systems", account)
}

// Erase removes the records of the account's deleted instances, in the caller's transaction, and returns their number.
func (s *Store) Erase(ctx context.Context, tx storage.Tx, account string) (int, error) {
	_, err := storage.Exec(ctx, tx, `DELETE`+orphanedConfigurations, account)

	var removed int64
	if err == nil {
		removed, err = storage.Exec(ctx, tx, `DELETE`+orphaned, account)
	}

	return int(removed), failure.While(err, "erasing the objects of account %s in other systems", account)
}
