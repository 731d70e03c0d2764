package operations

import (
	"context"
	"fmt"

	"github.com/environment-broker/environment-broker/process"
	"github.com/environment-broker/environment-broker/storage"
)

// Standing is how many operations of a kind stand in a state that is no end, and since when the oldest of them is there.
type Standing struct {
	Kind   string        `db:"kind"`
	State  process.State `db:"state"`
	Count  int           `db:"count"`
	Oldest storage.Time  `db:"oldest"`
}

// standing counts by two indexes: those of what waits for its turn and of what is under way.
const standing = `SELECT kind, state, COUNT(*) AS count, MIN(created_at) AS oldest FROM operations
	WHERE state = 'pending' GROUP BY kind, state
UNION ALL
SELECT kind, state, COUNT(*) AS count, MIN(created_at) AS oldest FROM operations
	WHERE state IN ('in progress', 'canceling') GROUP BY kind, state`

// Standing counts the operations that have not ended.
func (s *Store) Standing(ctx context.Context) ([]Standing, error) {
	found, err := storage.Select[Standing](ctx, s.db.Reader(), standing)
	if err != nil {
		return nil, fmt.Errorf("counting unfinished operations: %w", err)
	}

	return found, nil
}
