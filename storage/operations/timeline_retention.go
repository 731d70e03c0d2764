package operations

import (
	"context"
	"fmt"
	"time"

	"github.com/sirupsen/logrus"
	"k8s.io/utils/clock"

	"github.com/environment-broker/environment-broker/storage"
)

// retentionBatch is the maximum number of timelines that are removed in one transaction.
const retentionBatch = 50

// Retention returns a storage.Retention that removes the timelines of operations that ended longer ago than keep. If keep is 0,
// timelines are kept forever.
func (s *Store) Retention(keep time.Duration, clock clock.WithTicker, log logrus.FieldLogger) storage.Retention {
	return storage.Retention{
		Name: "timeline retention", Rows: "timelines", Batch: retentionBatch, Clock: clock, Log: log,
		Remove: func(ctx context.Context, now time.Time, limit int) (int, error) {
			if keep <= 0 {
				return 0, nil
			}

			return s.RemoveTimelines(ctx, now.Add(-keep), now, limit)
		},
	}
}

// RemoveTimelines removes the timelines and step attempts of at most limit operations that ended before endedBefore, oldest first,
// and returns the number of these operations. The operations themselves stay; their column timeline_removed_at is set to now.
// Concurrent replicas skip each other's rows.
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
