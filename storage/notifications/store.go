package notifications

import (
	"context"
	"embed"
	"errors"

	"github.com/environment-broker/environment-broker/internal/clients/notification"
	"github.com/environment-broker/environment-broker/internal/environment"
	"github.com/environment-broker/environment-broker/internal/failure"
	"github.com/environment-broker/environment-broker/storage"
	"github.com/environment-broker/environment-broker/storage/eventlog"
)

//go:embed migrations/*.sql
var migrations embed.FS

// errLeaseLost rolls the transaction back after the replica has lost the lease.
var errLeaseLost = errors.New("another replica delivers")

// Numbers of the messages of an event. The messages are sent in the order of their numbers.
const (
	numberCreate = 1
	numberBegin  = 2
	numberEnd    = 3
)

// Store turns events into messages, and stores them until they are delivered. Its methods may be called from any goroutine.
type Store struct{ db *storage.DB }

// Open migrates the tables and returns the store.
func Open(ctx context.Context, db *storage.DB) (*Store, error) {
	// The name "outbox" comes from an earlier release. It cannot change, because the database records the migration versions under
	// this name.
	if err := db.Migrate(ctx, "outbox", migrations, "migrations"); err != nil {
		return nil, err
	}

	return &Store{db: db}, nil
}

// Selected returns the filter for the events that Add turns into messages.
func Selected() eventlog.Filter {
	return eventlog.Filter{
		Kinds: environment.UpgradeKinds(),
		Types: []eventlog.Type{
			eventlog.MaintenanceStarted, eventlog.OperationSucceeded, eventlog.OperationFailed, eventlog.OperationCanceled,
		},
	}
}

// Position returns the position of the last event that was either turned into messages or not selected by Selected.
func (s *Store) Position(ctx context.Context) (int64, error) {
	position, err := storage.Get[int64](ctx, s.db.Writer(), `SELECT position FROM notification_lease WHERE id = 1`)

	return position, failure.While(err, "reading the position of the notifications")
}

// Add adds the messages that report the events, unless these messages exist, and changes the stored position from position to
// last. If the owner has lost the lease, or if the stored position is not position, Add changes nothing and reports false.
func (s *Store) Add(ctx context.Context, owner string, events []eventlog.Event, position, last int64) (bool, error) {
	err := s.db.InTx(ctx, func(tx storage.Tx) error {
		moved, err := storage.Exec(ctx, tx, `UPDATE notification_lease SET position = ? WHERE id = 1 AND position = ? AND owner = ?`,
			last, position, owner)
		if err == nil && moved == 0 {
			err = errLeaseLost
		}

		for _, event := range events {
			if err == nil {
				err = add(ctx, tx, event)
			}
		}

		return err
	})
	if errors.Is(err, errLeaseLost) {
		return false, nil
	}

	return err == nil, failure.While(err, "adding notifications")
}

// add adds the messages that report the event. It adds none for the end of an upgrade whose maintenance never started.
func add(ctx context.Context, tx storage.Tx, event eventlog.Event) error {
	switch event.Type {
	case eventlog.MaintenanceStarted:
		if err := begin(ctx, tx, event, numberCreate, notification.ActionCreate); err != nil {
			return err
		}

		return begin(ctx, tx, event, numberBegin, notification.ActionBegin)
	case eventlog.OperationCanceled:
		return end(ctx, tx, event, notification.ActionCancel)
	default:
		return end(ctx, tx, event, notification.ActionFinish)
	}
}

func begin(ctx context.Context, tx storage.Tx, event eventlog.Event, number int, action notification.Action) error {
	at := storage.At(event.At)

	_, err := storage.Exec(ctx, tx, `INSERT INTO notifications
		(event_id, number, instance_id, event_type, action, happened_at, next_run_at, attempts, delivered)
		VALUES (?, ?, ?, ?, ?, ?, ?, 0, FALSE) ON CONFLICT (event_id, number) DO NOTHING`,
		event.OperationID, number, event.InstanceID, string(typeOf(event.Kind)), string(action), at, at)

	return err
}

func end(ctx context.Context, tx storage.Tx, event eventlog.Event, action notification.Action) error {
	at := storage.At(event.At)

	_, err := storage.Exec(ctx, tx, `INSERT INTO notifications
		(event_id, number, instance_id, event_type, action, happened_at, next_run_at, attempts, delivered)
		SELECT event_id, ?, instance_id, event_type, ?, ?, ?, 0, FALSE FROM notifications WHERE event_id = ? AND number = ?
		ON CONFLICT (event_id, number) DO NOTHING`, numberEnd, string(action), at, at, event.OperationID, numberCreate)

	return err
}

// typeOf returns the notification type for upgrades of the given kind.
func typeOf(kind string) notification.Type {
	if kind == environment.KindUpgradeKyma {
		return notification.Kyma
	}

	return notification.Kubernetes
}
