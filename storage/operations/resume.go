package operations

import (
	"context"
	"fmt"
	"time"

	"github.com/environment-broker/environment-broker/storage"
)

// Resume makes the operations due now that try again later because of a problem of the component, and returns how many.
func (s *Store) Resume(ctx context.Context, component string, now time.Time) (int64, error) {
	resumed, err := storage.Exec(ctx, s.db.Writer(), `UPDATE operations SET next_run_at = ?, woken = TRUE WHERE id IN (
		SELECT id FROM operations WHERE problem_component = ? AND next_run_at > ? AND state IN ('in progress', 'canceling')
		ORDER BY id`+s.db.ForUpdate()+`)`, storage.At(now), component, storage.At(now))
	if err != nil {
		return 0, fmt.Errorf("resuming operations: %w", err)
	}

	return resumed, nil
}
