package operations

import (
	"context"
	"fmt"
	"time"

	"github.com/environment-broker/environment-broker/process"
	"github.com/environment-broker/environment-broker/storage"
)

// Cancel cancels every unfinished operation of the instance, in the caller's transaction. Pending operations end immediately. An
// operation in progress becomes canceling, is due immediately, and ends at its next safe point. Cancel returns the IDs of all
// operations that it has canceled. why is the message of their timeline entries. The caller must wake the engine after the commit.
//
// Operations of the kinds in except are not canceled. They become due immediately, so that their steps notice that the instance
// is being deleted.
func (s *Store) Cancel(ctx context.Context, tx storage.Tx, instanceID, why string, now time.Time, except ...string) ([]string, error) {
	if len(except) == 0 {
		return s.cancel(ctx, tx, "instance_id = ?", []any{instanceID}, why, now)
	}

	_, err := storage.Exec(ctx, tx, `UPDATE operations SET next_run_at = ?, woken = TRUE
		WHERE instance_id = ? AND state = 'in progress' AND kind IN (?)`, storage.At(now), instanceID, except)
	if err != nil {
		return nil, fmt.Errorf("waking the operation of instance %s: %w", instanceID, err)
	}

	return s.cancel(ctx, tx, "instance_id = ? AND kind NOT IN (?)", []any{instanceID, except}, why, now)
}

// CancelOne is like Cancel, but for a single operation. It reports false if the operation has ended or is already canceling.
func (s *Store) CancelOne(ctx context.Context, tx storage.Tx, id, why string, now time.Time) (bool, error) {
	canceled, err := s.cancel(ctx, tx, "id = ?", []any{id}, why, now)

	return len(canceled) == 1, err
}

// cancel implements Cancel and CancelOne for the operations that match the condition. args are the arguments of the condition. The
// condition must be a constant in this file, because it becomes part of the statement.
func (s *Store) cancel(ctx context.Context, tx storage.Tx, condition string, args []any, why string, now time.Time) ([]string, error) {
	at := storage.At(now)

	ended, err := storage.Select[row](ctx, tx, `UPDATE operations
		SET state = 'canceled', description = 'Canceled', updated_at = ?, state_changed_at = ?, finished_at = ?
		WHERE `+condition+` AND state = 'pending' RETURNING `+status, append([]any{at, at, at}, args...)...)
	if err != nil {
		return nil, fmt.Errorf("canceling pending operations of %s: %w", args[0], err)
	}

	canceled := make([]string, 0, len(ended))
	for _, record := range records(ended) {
		canceled = append(canceled, record.ID)
		storage.AfterCommit(tx, func() { s.ended(record) })
	}

	canceling, err := storage.Select[string](ctx, tx, `UPDATE operations
		SET state = 'canceling', updated_at = ?, state_changed_at = ?, next_run_at = ?, woken = TRUE
		WHERE `+condition+` AND state = 'in progress' RETURNING id`, append([]any{at, at, at}, args...)...)
	if err != nil {
		return nil, fmt.Errorf("canceling the operation of %s: %w", args[0], err)
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

// RecordRetry adds an entry to the timeline of an ended operation, in the caller's transaction. The entry says that a new
// operation retries the ended one.
func (s *Store) RecordRetry(ctx context.Context, tx storage.Tx, id, why string, now time.Time) error {
	// This update changes nothing. It only locks the row, so that no other transaction appends to the timeline until this one
	// ends.
	if _, err := storage.Exec(ctx, tx, `UPDATE operations SET updated_at = updated_at WHERE id = ?`, id); err != nil {
		return fmt.Errorf("recording the retry of operation %s: %w", id, err)
	}

	return appendTimeline(ctx, tx, id, process.Entry{Began: now, End: now, Outcome: process.Retried, Message: why})
}

// Skip requests to skip the current step of an operation in progress, or any step of a pending operation, and makes the operation
// due now. If an attempt is running, its result does not undo the request. If the operation is at a different step, is being
// canceled or has ended, Skip changes nothing and reports false. The caller must check process.Engine.MaySkip first.
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

// Wake finds the operations whose process.Record.WaitingFor is one of the given events, makes them due now, and returns their
// number. If a step of such an operation is running, the operation becomes due again when its run releases the lease.
func (s *Store) Wake(ctx context.Context, events []string, now time.Time) (int64, error) {
	if len(events) == 0 {
		return 0, nil
	}

	woken, err := storage.Exec(ctx, s.db.Writer(), `UPDATE operations SET next_run_at = ?, woken = TRUE WHERE id IN (
		SELECT id FROM operations WHERE waiting_for IN (?) AND state IN ('in progress', 'canceling') ORDER BY id`+
		s.db.ForUpdate()+`)`, storage.At(now), events)
	if err != nil {
		return 0, fmt.Errorf("waking operations: %w", err)
	}

	return woken, nil
}

// Resume finds the operations that are waiting for a retry after a problem with the given component, makes them due now, and
// returns their number. Services call it when the component responds again, so that these operations do not have to wait for
// their next scheduled attempt.
func (s *Store) Resume(ctx context.Context, component string, now time.Time) (int64, error) {
	resumed, err := storage.Exec(ctx, s.db.Writer(), `UPDATE operations SET next_run_at = ?, woken = TRUE WHERE id IN (
		SELECT id FROM operations WHERE problem_component = ? AND next_run_at > ? AND state IN ('in progress', 'canceling')
		ORDER BY id`+s.db.ForUpdate()+`)`, storage.At(now), component, storage.At(now))
	if err != nil {
		return 0, fmt.Errorf("resuming operations: %w", err)
	}

	return resumed, nil
}
