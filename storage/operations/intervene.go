package operations

import (
	"context"
	"fmt"
	"time"

	"github.com/environment-broker/environment-broker/process"
	"github.com/environment-broker/environment-broker/storage"
)

// Cancel asks every unfinished operation of the instance to end: a pending one is canceled at once, the active one becomes
// canceling, is due at once and ends at its next safe point. It returns the ids of the operations that it concerned.
func (s *Store) Cancel(ctx context.Context, tx storage.Tx, instanceID, why string, now time.Time) ([]string, error) {
	return s.cancel(ctx, tx, "instance_id", instanceID, why, now)
}

// CancelOne is Cancel for one operation. It reports false, and changes nothing, when that has ended or is canceling.
func (s *Store) CancelOne(ctx context.Context, tx storage.Tx, id, why string, now time.Time) (bool, error) {
	concerned, err := s.cancel(ctx, tx, "id", id, why, now)

	return len(concerned) == 1, err
}

func (s *Store) cancel(ctx context.Context, tx storage.Tx, column, value, why string, now time.Time) ([]string, error) {
	at := storage.At(now)

	ended, err := storage.Select[row](ctx, tx, `UPDATE operations
		SET state = 'canceled', description = 'Canceled', updated_at = ?, state_changed_at = ?, finished_at = ?
		WHERE `+column+` = ? AND state = 'pending' RETURNING `+status, at, at, at, value)
	if err != nil {
		return nil, fmt.Errorf("canceling pending operations of %s: %w", value, err)
	}

	canceled := make([]string, 0, len(ended))
	for _, record := range records(ended) {
		canceled = append(canceled, record.ID)
		storage.AfterCommit(tx, func() { s.ended(record) })
	}

	canceling, err := storage.Select[string](ctx, tx, `UPDATE operations
		SET state = 'canceling', updated_at = ?, state_changed_at = ?, next_run_at = ?, woken = TRUE
		WHERE `+column+` = ? AND state = 'in progress' RETURNING id`, at, at, at, value)
	if err != nil {
		return nil, fmt.Errorf("canceling the operation of %s: %w", value, err)
	}

	for outcome, ids := range map[process.Outcome][]string{
		process.OperationCanceled: canceled, process.CancelRequested: canceling,
	} {
		for _, id := range ids {
			if err := appendTimeline(ctx, tx, id, process.Entry{Began: now, End: now, Outcome: outcome, Message: why}); err != nil {
				return nil, err
			}
		}
	}

	return append(canceled, canceling...), nil
}

// NoteRetry adds a line to the timeline of an operation that another one retries.
func (s *Store) NoteRetry(ctx context.Context, tx storage.Tx, id, why string, now time.Time) error {
	// An update that changes nothing: nobody else appends to the timeline until the transaction ends.
	if _, err := storage.Exec(ctx, tx, `UPDATE operations SET updated_at = updated_at WHERE id = ?`, id); err != nil {
		return fmt.Errorf("noting that operation %s is retried: %w", id, err)
	}

	return appendTimeline(ctx, tx, id, process.Entry{Began: now, End: now, Outcome: process.Retried, Message: why})
}

// Skip has the step left out with which an operation in progress is busy, or to which a pending one will come, and makes the
// operation due now. It reports false, and changes nothing, when the operation is not, or no more, at that step.
func (s *Store) Skip(ctx context.Context, tx storage.Tx, id string, skip process.Skip, now time.Time) (bool, error) {
	changed, err := storage.Exec(ctx, tx, `UPDATE operations
		SET skip_step = ?, skip_reason = ?, next_run_at = ?, woken = TRUE
		WHERE id = ? AND (state = 'in progress' AND step = ? OR state = 'pending')`, skip.Step, skip.Reason, storage.At(now), id, skip.Step)
	if err != nil || changed == 0 {
		return false, err
	}

	return true, appendTimeline(ctx, tx, id, process.Entry{
		Began: now, End: now, Outcome: process.SkipRequested, Message: skip.Step + ": " + skip.Reason,
	})
}
