package operations

import (
	"context"

	"github.com/environment-broker/environment-broker/internal/failure"
	"github.com/environment-broker/environment-broker/storage"
)

// SetVisibleTo changes who may see the unfinished operations with the given keys, which are IDs of instances or keys of bindings.
// The caller must have locked the instance, so that no operation is accepted meanwhile. Ended operations do not change.
func (s *Store) SetVisibleTo(ctx context.Context, tx storage.Tx, keys []string, visibleTo string) error {
	if len(keys) == 0 {
		return nil
	}

	_, err := storage.Exec(ctx, tx, `UPDATE operations SET visible_to = ? WHERE id IN (
		SELECT id FROM operations WHERE instance_id IN (?) AND state IN ('pending', 'in progress', 'canceling') ORDER BY id`+
		s.db.ForUpdate()+`)`, visibleTo, keys)

	return failure.While(err, "changing who may see the operations of %s", keys[0])
}
