package eventlog

import (
	"context"
	"time"

	"github.com/sirupsen/logrus"
	"k8s.io/utils/clock"

	"github.com/environment-broker/environment-broker/internal/failure"
	"github.com/environment-broker/environment-broker/storage"
)

const (
	// maxEvents is the maximum number of events in the log. The oldest events above this number are removed, regardless of their age.
	maxEvents = 1_000_000
	// retentionBatch is the maximum number of events that are removed in one transaction.
	retentionBatch = 500
)

// RemoveBefore removes events that were added before the given time, and the oldest events above maxEvents. It removes at most
// limit events, oldest first, and returns their number. It removes nothing while another replica publishes or removes events.
func (s *Store) RemoveBefore(ctx context.Context, before time.Time, limit int) (int, error) {
	removed := 0

	err := s.db.InTx(ctx, func(tx storage.Tx) error {
		heads, err := storage.Select[Head](ctx, tx, `SELECT position, removed FROM events_head WHERE id = 1`+s.db.SkipLocked())
		if err != nil || len(heads) == 0 {
			return err
		}

		positions, err := storage.Select[int64](ctx, tx, `SELECT position FROM (SELECT position, added_at FROM events
			ORDER BY position `+storage.Page(limit, 0)+`) AS oldest WHERE added_at < ? OR position <= ? ORDER BY position`,
			storage.At(before), heads[0].Position-maxEvents)
		if err != nil || len(positions) == 0 {
			return err
		}

		removed = len(positions)
		last := positions[removed-1]

		if _, err := storage.Exec(ctx, tx, `DELETE FROM events WHERE position <= ?`, last); err != nil {
			return err
		}

		_, err = storage.Exec(ctx, tx, `UPDATE events_head SET removed = ? WHERE id = 1`, last)

		return err
	})

	return removed, failure.While(err, "removing old events")
}

// Retention returns a storage.Retention that removes the events that are older than keep, and the oldest events above maxEvents.
func (s *Store) Retention(keep time.Duration, clock clock.WithTicker, log logrus.FieldLogger) storage.Retention {
	return storage.Retention{
		Name: "event log retention", Rows: "events", Batch: retentionBatch, Clock: clock, Log: log,
		Remove: func(ctx context.Context, now time.Time, limit int) (int, error) {
			return s.RemoveBefore(ctx, now.Add(-keep), limit)
		},
	}
}

// CountErasable returns the number of events that name the account.
func (s *Store) CountErasable(ctx context.Context, account string) (int, error) {
	count, err := storage.Get[int](ctx, s.db.Reader(), `SELECT (SELECT count(*) FROM events WHERE account = ? AND account <> '')
		+ (SELECT count(*) FROM new_events WHERE account = ? AND account <> '')`, account, account)

	return count, failure.While(err, "counting events to erase")
}

// Erase removes the events that name the account, in the caller's transaction, and returns their number. It deletes from
// new_events first. If another replica is publishing some of these events, this deletion waits for that replica, and the deletion
// from events then includes them.
func (s *Store) Erase(ctx context.Context, tx storage.Tx, account string) (int, error) {
	total := 0

	for _, table := range []string{"new_events", "events"} {
		removed, err := storage.Exec(ctx, tx, `DELETE FROM `+table+` WHERE account = ? AND account <> ''`, account)
		if err != nil {
			return 0, failure.While(err, "erasing events")
		}

		total += int(removed)
	}

	return total, nil
}
