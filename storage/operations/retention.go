package operations

import (
	"context"
	"fmt"
	"time"

	"github.com/environment-broker/environment-broker/storage"
)

// RemoveTimelines removes the timelines and the attempts of operations that ended before the moment, of the oldest first and of no
// more than the limit. The operations stay and tell when that was. It returns how many it concerned. Replicas that do this at the
// same time pass by each other.
func (s *Store) RemoveTimelines(ctx context.Context, endedBefore, now time.Time, limit int) (int, error) {
	var removed []string

	err := s.db.InTx(ctx, func(tx storage.Tx) error {
		var err error

		removed, err = storage.Select[string](ctx, tx, `WITH chosen AS MATERIALIZED (
				SELECT id FROM operations WHERE finished_at < ? AND finished_at IS NOT NULL AND timeline_removed_at IS NULL
				ORDER BY finished_at `+storage.Page(limit, 0)+s.db.SkipLocked()+`
			)
			UPDATE operations SET timeline_removed_at = ? WHERE id IN (SELECT id FROM chosen) RETURNING id`,
			storage.At(endedBefore), storage.At(now))
		if err != nil || len(removed) == 0 {
			return err
		}

		for _, table := range []string{"timeline", "step_attempts"} {
			if _, err := storage.Exec(ctx, tx, `DELETE FROM `+table+` WHERE operation_id IN (?)`, removed); err != nil {
				return err
			}
		}

		return nil
	})
	if err != nil {
		return 0, fmt.Errorf("removing old timelines: %w", err)
	}

	return len(removed), nil
}
