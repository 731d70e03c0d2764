package operations

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/environment-broker/environment-broker/process"
	"github.com/environment-broker/environment-broker/storage"
)

// Reader is for reads outside of a transaction.
func (s *Store) Reader() storage.Tx { return s.db.Reader() }

// Get returns an operation without its payload, or storage.ErrNotFound.
func (s *Store) Get(ctx context.Context, tx storage.Tx, id string) (process.Record, error) {
	row, err := storage.Get[row](ctx, tx, `SELECT `+status+` FROM operations WHERE id = ?`, id)
	if err != nil {
		return process.Record{}, fmt.Errorf("reading operation %s: %w", id, err)
	}

	return row.record(), nil
}

// Polled returns what a platform asks about an operation, by its key alone, or storage.ErrNotFound: it asks often.
func (s *Store) Polled(ctx context.Context, tx storage.Tx, id string) (process.Record, error) {
	row, err := storage.Get[row](ctx, tx, `SELECT id, instance_id, kind, state, description, problem_message, progress, stage, step,
		created_at FROM operations WHERE id = ?`, id)
	if err != nil {
		return process.Record{}, fmt.Errorf("reading operation %s: %w", id, err)
	}

	return row.record(), nil
}

// Payload returns the data of an operation, storage.ErrNotFound, or ErrSealed when the key is gone by which it is
// sealed.
func (s *Store) Payload(ctx context.Context, tx storage.Tx, id string) (json.RawMessage, error) {
	sealed, err := storage.Get[string](ctx, tx, `SELECT payload FROM operations WHERE id = ?`, id)
	if err != nil {
		return nil, fmt.Errorf("reading the data of operation %s: %w", id, err)
	}

	return s.open(id, sealed)
}

// OfInstance returns the operations of an instance, the newest first.
func (s *Store) OfInstance(ctx context.Context, tx storage.Tx, instanceID string) ([]process.Record, error) {
	rows, err := storage.Select[row](ctx, tx,
		`SELECT `+status+` FROM operations WHERE instance_id = ? ORDER BY position DESC`, instanceID)
	if err != nil {
		return nil, fmt.Errorf("reading the operations of %s: %w", instanceID, err)
	}

	return records(rows), nil
}

// Latest returns the newest operation of an instance with one of the kinds, or storage.ErrNotFound.
func (s *Store) Latest(ctx context.Context, tx storage.Tx, instanceID string, kinds ...string) (process.Record, error) {
	row, err := storage.Get[row](ctx, tx, `SELECT `+status+` FROM operations
		WHERE instance_id = ? AND kind IN (?) ORDER BY position DESC LIMIT 1`, instanceID, kinds)
	if err != nil {
		return process.Record{}, fmt.Errorf("reading the last operation of %s: %w", instanceID, err)
	}

	return row.record(), nil
}

// readTimeline has the first line told by the operation's own row, unless there was more to say than that it was accepted.
const readTimeline = `SELECT 0 AS seq, '' AS stage, '' AS step, 0 AS first_attempt, 0 AS attempt, created_at AS began_at,
		created_at AS ended_at, 'accepted' AS outcome, kind AS message, CAST(NULL AS TIMESTAMPTZ) AS next_run_at
	FROM operations WHERE id = ? AND timeline_removed_at IS NULL
		AND NOT EXISTS (SELECT 1 FROM timeline WHERE operation_id = operations.id AND outcome = 'accepted')
	UNION ALL
	SELECT seq, stage, step, first_attempt, attempt, began_at, ended_at, outcome, message, next_run_at
	FROM timeline WHERE operation_id = ? ORDER BY seq`

// Timeline returns what happened to an operation, the oldest first.
func (s *Store) Timeline(ctx context.Context, operationID string) ([]process.Entry, error) {
	rows, err := storage.Select[timelineRow](ctx, s.db.Reader(), readTimeline, operationID, operationID)
	if err != nil {
		return nil, fmt.Errorf("reading the timeline of operation %s: %w", operationID, err)
	}

	entries := make([]process.Entry, 0, len(rows))
	for _, row := range rows {
		entries = append(entries, row.entry())
	}

	return entries, nil
}

// Change tells that an operation got another state, that another reason holds it up, or that it got on.
type Change struct {
	ID         string       `db:"id"`
	Kind       string       `db:"kind"`
	InstanceID string       `db:"instance_id"`
	State      string       `db:"state"`
	At         storage.Time `db:"state_changed_at"`
}

// ChangedSince returns the operations that changed so at or after the moment, the oldest first. A transaction that was open meanwhile may
// commit an earlier time later: who follows the changes reads with an overlap.
func (s *Store) ChangedSince(ctx context.Context, since time.Time, limit int) ([]Change, error) {
	changes, err := storage.Select[Change](ctx, s.db.Reader(), `SELECT id, kind, instance_id, state, state_changed_at FROM operations
		WHERE state_changed_at >= ? ORDER BY state_changed_at, id LIMIT ?`, storage.At(since), limit)
	if err != nil {
		return nil, fmt.Errorf("reading changed operations: %w", err)
	}

	return changes, nil
}

// Wake makes the operations that wait for one of the events due now, also those whose step runs at this moment.
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
