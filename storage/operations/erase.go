package operations

import (
	"context"
	"encoding/json"
	"time"

	"github.com/environment-broker/environment-broker/internal/failure"
	"github.com/environment-broker/environment-broker/process"
	"github.com/environment-broker/environment-broker/storage"
)

// erasedDescription is the description that replaces the original one in erased operations.
const erasedDescription = "Erased"

// erasable selects the ended operations of an account that have not been erased.
const erasable = `FROM operations WHERE tenant = ? AND erased_by = '' AND finished_at IS NOT NULL`

// Erasable returns the IDs of at most limit ended operations of the account that have not been erased. It locks these operations
// until the caller's transaction ends, in the order of their IDs.
func (s *Store) Erasable(ctx context.Context, tx storage.Tx, account string, limit int) ([]string, error) {
	ids, err := storage.Select[string](ctx, tx, `SELECT id `+erasable+` ORDER BY id `+storage.Page(limit, 0)+s.db.ForUpdate(), account)

	return ids, failure.While(err, "finding operations to erase")
}

// ErasableCounts contains the number of operations that an erasure would change, and the number of timeline entries and step
// attempts that it would remove.
type ErasableCounts struct {
	Operations      int `db:"operations"`
	TimelineEntries int `db:"timeline_entries"`
}

// CountErasable returns how many rows an erasure of the account would change or remove.
func (s *Store) CountErasable(ctx context.Context, account string) (ErasableCounts, error) {
	counts, err := storage.Get[ErasableCounts](ctx, s.db.Reader(), `WITH erasable AS MATERIALIZED (SELECT id `+erasable+`)
		SELECT (SELECT COUNT(*) FROM erasable) AS operations,
			(SELECT COUNT(*) FROM timeline WHERE operation_id IN (SELECT id FROM erasable)) +
			(SELECT COUNT(*) FROM step_attempts WHERE operation_id IN (SELECT id FROM erasable)) AS timeline_entries`, account)

	return counts, failure.While(err, "counting operations to erase")
}

// EraseTimelines removes the operations' timelines and step attempts, in the caller's transaction, and returns the number of
// removed rows.
func (s *Store) EraseTimelines(ctx context.Context, tx storage.Tx, ids []string) (int, error) {
	if len(ids) == 0 {
		return 0, nil
	}

	total := 0

	for _, table := range []string{"timeline", "step_attempts"} {
		removed, err := storage.Exec(ctx, tx, `DELETE FROM `+table+` WHERE operation_id IN (?)`, ids)
		if err != nil {
			return 0, failure.While(err, "erasing timelines")
		}

		total += int(removed)
	}

	return total, nil
}

// Erase removes the order, the requester, the problem and all other texts of the operations, in the caller's transaction. The rows
// stay, because the audit log must show that the operations existed. erasureID is the ID of the audit log entry of the erasure,
// which the transaction must already have inserted. The database rejects the erasure of unfinished operations, and of operations
// that belong to another account.
func (s *Store) Erase(ctx context.Context, tx storage.Tx, ids []string, erasureID string, now time.Time) error {
	for _, id := range ids {
		// Store a sealed empty payload, so that replicas of earlier versions can also decrypt it.
		if _, err := storage.Exec(ctx, tx, `UPDATE operations SET
				payload = ?, description = ?, problem_message = '', problem_detail = '', problem_reason = '', problem_component = '',
				progress = '', skip_reason = '', waiting_for = '', trace = '', ordered_by = '', audit = CASE WHEN audit = '' THEN '' ELSE '{}' END,
				timeline_removed_at = COALESCE(timeline_removed_at, ?), erased_by = ?
			WHERE id = ?`,
			s.keys.Seal(json.RawMessage(`{}`), payloadPlace(id)), erasedDescription, storage.At(now), erasureID, id); err != nil {
			return failure.While(err, "erasing operation %s", id)
		}
	}

	return nil
}

// Unfinished returns at most limit unfinished operations of the account, without their payloads.
func (s *Store) Unfinished(ctx context.Context, tx storage.Tx, account string, limit int) ([]process.Record, error) {
	rows, err := storage.Select[row](ctx, tx, `SELECT `+status+` FROM operations WHERE tenant = ? AND `+
		InStates(process.Pending, process.InProgress, process.Canceling)+` ORDER BY id `+storage.Page(limit, 0), account)

	return records(rows), failure.While(err, "finding unfinished operations of account %s", account)
}
