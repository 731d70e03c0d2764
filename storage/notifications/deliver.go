package notifications

import (
	"context"
	"time"

	"github.com/environment-broker/environment-broker/internal/clients/notification"
	"github.com/environment-broker/environment-broker/internal/environment"
	"github.com/environment-broker/environment-broker/internal/failure"
	"github.com/environment-broker/environment-broker/storage"
)

// Pending is a message that has not been delivered.
type Pending struct {
	notification.Message

	Number int
	// Attempts is the number of delivery attempts that have started. FirstAt is when the first of them started.
	Attempts int
	FirstAt  time.Time
}

// pendingRow is a row of notifications.
type pendingRow struct {
	EventID    string       `db:"event_id"`
	Number     int          `db:"number"`
	InstanceID string       `db:"instance_id"`
	Type       string       `db:"event_type"`
	Action     string       `db:"action"`
	HappenedAt storage.Time `db:"happened_at"`
	FirstAt    storage.Time `db:"first_run_at"`
	Attempts   int          `db:"attempts"`
}

// Hold takes or renews the lease on deliveries for the owner. It reports false if another replica has the lease.
func (s *Store) Hold(ctx context.Context, owner string, now, until time.Time) (bool, error) {
	held, err := storage.Exec(ctx, s.db.Writer(), `UPDATE notification_lease SET owner = ?, held_until = ?
		WHERE id = 1 AND (owner = ? OR held_until IS NULL OR held_until <= ?)`, owner, storage.At(until), owner, storage.At(now))

	return held == 1, failure.While(err, "taking the lease on the notifications")
}

// ReturnLease releases the owner's lease, so that another replica can take it immediately.
func (s *Store) ReturnLease(ctx context.Context, owner string) error {
	_, err := storage.Exec(ctx, s.db.Writer(), `UPDATE notification_lease SET held_until = NULL WHERE id = 1 AND owner = ?`, owner)

	return failure.While(err, "releasing the lease on the notifications")
}

// Due returns at most limit messages that are due, sorted by due time. For each event, it returns at most one message.
func (s *Store) Due(ctx context.Context, now time.Time, limit int) ([]Pending, error) {
	rows, err := storage.Select[pendingRow](ctx, s.db.Writer(), `SELECT event_id, number, instance_id, event_type, action, happened_at,
		first_run_at, attempts FROM notifications WHERE ended_at IS NULL AND next_run_at <= ? AND NOT EXISTS (
			SELECT 1 FROM notifications AS earlier WHERE earlier.event_id = notifications.event_id
			AND earlier.number < notifications.number AND earlier.ended_at IS NULL)
		ORDER BY next_run_at, event_id LIMIT ?`, storage.At(now), limit)

	due := make([]Pending, 0, len(rows))
	for _, row := range rows {
		due = append(due, Pending{
			Message: notification.Message{
				EventID: row.EventID, InstanceID: row.InstanceID, Type: notification.Type(row.Type), Action: notification.Action(row.Action),
				At: row.HappenedAt.Time,
			},
			Number: row.Number, Attempts: row.Attempts, FirstAt: row.FirstAt.Time,
		})
	}

	return due, failure.While(err, "finding notifications")
}

// Attempt records that an attempt to deliver the message has started, and returns the updated message.
func (s *Store) Attempt(ctx context.Context, message Pending, now time.Time) (Pending, error) {
	message.Attempts++
	if message.FirstAt.IsZero() {
		message.FirstAt = now
	}

	_, err := storage.Exec(ctx, s.db.Writer(), `UPDATE notifications SET attempts = ?, first_run_at = ?
		WHERE event_id = ? AND number = ? AND ended_at IS NULL`,
		message.Attempts, storage.At(message.FirstAt), message.EventID, message.Number)

	return message, failure.While(err, "recording an attempt to deliver a notification")
}

// Retry sets the time of the next delivery attempt.
func (s *Store) Retry(ctx context.Context, message Pending, next time.Time) error {
	_, err := storage.Exec(ctx, s.db.Writer(), `UPDATE notifications SET next_run_at = ? WHERE event_id = ? AND number = ? AND ended_at IS NULL`,
		storage.At(next), message.EventID, message.Number)

	return failure.While(err, "postponing a notification")
}

// End records that the message was delivered, or that the broker gave up sending it. The next message of the event can then be sent. End
// reports false if the message had already ended.
func (s *Store) End(ctx context.Context, message Pending, delivered bool, now time.Time) (bool, error) {
	ended, err := storage.Exec(ctx, s.db.Writer(), `UPDATE notifications SET ended_at = ?, delivered = ?
		WHERE event_id = ? AND number = ? AND ended_at IS NULL`, storage.At(now), delivered, message.EventID, message.Number)

	return ended == 1, failure.While(err, "recording the delivery of a notification")
}

// Backlog returns the number of undelivered messages, and the time of the oldest one.
func (s *Store) Backlog(ctx context.Context) (count int, oldest time.Time, err error) {
	row, err := storage.Get[struct {
		Count  int          `db:"count"`
		Oldest storage.Time `db:"oldest"`
	}](ctx, s.db.Reader(), `SELECT count(*) AS count, min(happened_at) AS oldest FROM notifications WHERE ended_at IS NULL`)

	return row.Count, row.Oldest.Time, failure.While(err, "counting notifications")
}

// Remove removes messages that are older than the given time and whose upgrades have ended, even if they were not delivered. It returns
// their number.
func (s *Store) Remove(ctx context.Context, before time.Time) (int64, error) {
	removed, err := storage.Exec(ctx, s.db.Writer(), `DELETE FROM notifications WHERE happened_at < ? AND event_id NOT IN (
		SELECT id FROM operations WHERE kind IN (?) AND state IN ('in progress', 'canceling'))`, storage.At(before), environment.UpgradeKinds())

	return removed, failure.While(err, "removing old notifications")
}
