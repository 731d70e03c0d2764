package outbox

import (
	"context"
	"embed"
	"slices"
	"time"

	"github.com/environment-broker/environment-broker/internal/clients/notification"
	"github.com/environment-broker/environment-broker/internal/environment"
	"github.com/environment-broker/environment-broker/internal/failure"
	"github.com/environment-broker/environment-broker/process"
	"github.com/environment-broker/environment-broker/storage"
	"github.com/environment-broker/environment-broker/storage/operations"
)

//go:embed migrations/*.sql
var migrations embed.FS

// The numbers of the messages of an event, in the order in which they are sent.
const (
	numberCreate = 1
	numberBegin  = 2
	numberEnd    = 3
)

// Store stores the messages.
type Store struct{ db *storage.DB }

// Operations is the store of the upgrades. operations.Store implements it.
type Operations interface {
	AtEnd(statements func(process.Record) []storage.Statement)
}

// Open migrates the tables and returns the store. From then on, the ends of upgrades add messages.
func Open(ctx context.Context, db *storage.DB, ends Operations) (*Store, error) {
	if err := db.Migrate(ctx, "outbox", migrations, "migrations"); err != nil {
		return nil, err
	}

	ends.AtEnd(atEnd)

	return &Store{db: db}, nil
}

// Begin adds the messages that announce an upgrade and start its maintenance, unless they exist. It returns process.ErrLeaseLost if the
// upgrade has lost its lease.
func (s *Store) Begin(ctx context.Context, by process.Record, now time.Time) error {
	at := storage.At(now)

	announce := func(number int, action notification.Action) storage.Statement {
		return storage.Statement{
			Text: `INSERT INTO notifications (event_id, number, instance_id, event_type, action, happened_at, next_run_at, attempts, delivered)
				SELECT ?, ?, ?, ?, ?, ?, ?, 0, ? FROM first WHERE true ON CONFLICT (event_id, number) DO NOTHING`,
			Args: []any{by.ID, number, by.InstanceID, string(typeOf(by.Kind)), string(action), at, at, false},
		}
	}
	err := operations.Fenced(ctx, s.db, by, announce(numberCreate, notification.ActionCreate), announce(numberBegin, notification.ActionBegin))

	return failure.While(err, "recording the notifications of operation %s", by.ID)
}

// typeOf returns the type of the event of an upgrade.
func typeOf(kind string) notification.Type {
	if kind == environment.KindUpgradeKyma {
		return notification.Kyma
	}

	return notification.Kubernetes
}

// atEnd returns the statement that adds the last message of an upgrade, in the transaction that ends the operation. It returns none for
// other kinds. The statement adds nothing if the operation has no event. It reads the state of the operation from the table
// `first (value)`, see storage.DB.ExecCTE.
func atEnd(by process.Record) []storage.Statement {
	if !slices.Contains(environment.UpgradeKinds(), by.Kind) {
		return nil
	}

	at := storage.At(by.FinishedAt)

	return []storage.Statement{{
		Text: `INSERT INTO notifications
			(event_id, number, instance_id, event_type, action, happened_at, next_run_at, attempts, delivered)
			SELECT event_id, ?, instance_id, event_type, CASE WHEN first.value = ? THEN ? ELSE ? END, ?, ?, 0, FALSE
			FROM notifications, first WHERE event_id = ? AND number = ? ON CONFLICT (event_id, number) DO NOTHING`,
		Args: []any{
			numberEnd, string(process.Canceled), string(notification.ActionCancel), string(notification.ActionFinish), at, at,
			by.ID, numberCreate,
		},
	}}
}
