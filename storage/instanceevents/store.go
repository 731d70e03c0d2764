package instanceevents

import (
	"context"
	"embed"
	"time"

	"github.com/sirupsen/logrus"
	"k8s.io/utils/clock"

	"github.com/environment-broker/environment-broker/internal/environment"
	"github.com/environment-broker/environment-broker/internal/failure"
	"github.com/environment-broker/environment-broker/storage"
)

//go:embed migrations/*.sql
var migrations embed.FS

const (
	// Limit is the maximum number of events that are kept for each instance and system.
	Limit = 20

	// retentionBatch is the maximum number of events that are removed in one transaction.
	retentionBatch = 500
)

// row is a row of instance_events.
type row struct {
	InstanceID string       `db:"instance_id"`
	System     string       `db:"system"`
	Number     int64        `db:"number"`
	Result     string       `db:"result"`
	Message    string       `db:"message"`
	Happened   int          `db:"happened"`
	FirstAt    storage.Time `db:"first_at"`
	LastAt     storage.Time `db:"last_at"`
}

// Store records and reads the events and the intents. Its methods may be called from any goroutine.
type Store struct{ db *storage.DB }

// Open migrates the table and returns the store. The instances table must exist before an event is recorded.
func Open(ctx context.Context, db *storage.DB) (*Store, error) {
	if err := db.Migrate(ctx, "instance_events", migrations, "migrations"); err != nil {
		return nil, err
	}

	return &Store{db: db}, nil
}

// Record adds the event, with LastAt as its time, in the caller's transaction. If the event equals the newest one of the same
// system, Record only increments the count of that event. If the instance does not exist, Record does nothing. It locks the
// instance, so that a concurrent deletion also removes the event.
func (s *Store) Record(ctx context.Context, tx storage.Tx, event environment.Event) error {
	return failure.While(s.record(ctx, tx, event), "recording an event of instance %s", event.InstanceID)
}

func (s *Store) record(ctx context.Context, tx storage.Tx, event environment.Event) error {
	present, err := storage.Select[int](ctx, tx, `SELECT 1 FROM instances WHERE id = ?`+s.db.ForUpdate(), event.InstanceID)
	if err != nil || len(present) == 0 {
		return err
	}

	newest, err := storage.Select[row](ctx, tx, `SELECT instance_id, system, number, result, message, happened, first_at, last_at
		FROM instance_events WHERE instance_id = ? AND system = ? ORDER BY number DESC LIMIT 1`, event.InstanceID, event.System)
	if err != nil {
		return err
	}

	number := int64(1)

	if len(newest) > 0 {
		if newest[0].Result == event.Result && newest[0].Message == event.Message {
			_, err := storage.Exec(ctx, tx, `UPDATE instance_events SET happened = happened + 1, last_at = ?
				WHERE instance_id = ? AND system = ? AND number = ?`, storage.At(event.LastAt), event.InstanceID, event.System, newest[0].Number)

			return err
		}

		number += newest[0].Number
	}

	if _, err := storage.Exec(ctx, tx, `INSERT INTO instance_events (instance_id, system, number, result, message, happened, first_at, last_at)
		VALUES (?, ?, ?, ?, ?, 1, ?, ?)`, event.InstanceID, event.System, number, event.Result, event.Message,
		storage.At(event.LastAt), storage.At(event.LastAt)); err != nil {
		return err
	}

	_, err = storage.Exec(ctx, tx, `DELETE FROM instance_events WHERE instance_id = ? AND system = ? AND number <= ?`,
		event.InstanceID, event.System, number-Limit)

	return err
}

// OfInstance returns the events of an instance, newest first.
func (s *Store) OfInstance(ctx context.Context, instanceID string) ([]environment.Event, error) {
	rows, err := storage.Select[row](ctx, s.db.Reader(), `SELECT instance_id, system, number, result, message, happened, first_at, last_at
		FROM instance_events WHERE instance_id = ? ORDER BY last_at DESC, system, number DESC`, instanceID)

	events := make([]environment.Event, 0, len(rows))
	for _, row := range rows {
		events = append(events, environment.Event{
			InstanceID: row.InstanceID, System: row.System, Result: row.Result, Message: row.Message, Count: row.Happened,
			FirstAt: row.FirstAt.Time, LastAt: row.LastAt.Time,
		})
	}

	return events, failure.While(err, "reading the events of instance %s", instanceID)
}

// Remove removes all events and intents of an instance, in the transaction that deletes the instance. Call it after the row of the
// instance has been deleted.
func (s *Store) Remove(ctx context.Context, tx storage.Tx, instanceID string) error {
	_, err := storage.Exec(ctx, tx, `DELETE FROM instance_events WHERE instance_id = ?`, instanceID)
	if err == nil {
		_, err = storage.Exec(ctx, tx, `DELETE FROM instance_event_intents WHERE instance_id = ?`, instanceID)
	}

	return failure.While(err, "removing the events of instance %s", instanceID)
}

// RemoveBefore removes at most limit events whose last occurrence was before the given time, oldest first, and returns their number.
// Concurrent replicas skip each other's rows.
func (s *Store) RemoveBefore(ctx context.Context, before time.Time, limit int) (int, error) {
	var removed int64

	err := s.db.InTx(ctx, func(tx storage.Tx) error {
		var err error

		removed, err = storage.Exec(ctx, tx, `WITH chosen AS MATERIALIZED (
				SELECT instance_id, system, number FROM instance_events WHERE last_at < ? ORDER BY last_at `+storage.Page(limit, 0)+s.db.SkipLocked()+`
			)
			DELETE FROM instance_events WHERE (instance_id, system, number) IN (SELECT instance_id, system, number FROM chosen)`, storage.At(before))

		return err
	})

	return int(removed), failure.While(err, "removing old events")
}

// Retention returns a storage.Retention that removes events older than keep. If keep is 0, events are kept as long as their
// instances.
func (s *Store) Retention(keep time.Duration, clock clock.WithTicker, log logrus.FieldLogger) storage.Retention {
	return storage.Retention{
		Name: "event retention", Rows: "events", Batch: retentionBatch, Clock: clock, Log: log,
		Remove: func(ctx context.Context, now time.Time, limit int) (int, error) {
			if keep <= 0 {
				return 0, nil
			}

			return s.RemoveBefore(ctx, now.Add(-keep), limit)
		},
	}
}
