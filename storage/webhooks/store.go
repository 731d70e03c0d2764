package webhooks

import (
	"context"
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/environment-broker/environment-broker/internal/failure"
	"github.com/environment-broker/environment-broker/internal/secret"
	"github.com/environment-broker/environment-broker/storage"
	"github.com/environment-broker/environment-broker/storage/eventlog"
)

//go:embed migrations/*.sql
var migrations embed.FS

// Store reads and writes webhooks and their deliveries, and encrypts the URLs and secrets. Its methods may be called from any goroutine.
type Store struct {
	db   *storage.DB
	keys *secret.Keyring
}

// Open migrates the tables and returns the store. The tables of package eventlog must exist.
func Open(ctx context.Context, db *storage.DB, keys *secret.Keyring) (*Store, error) {
	if err := db.Migrate(ctx, "webhooks", migrations, "migrations"); err != nil {
		return nil, err
	}

	return &Store{db: db, keys: keys}, nil
}

// ErrUnreadable reports that the content of a webhook cannot be used: no configured key decrypts it, or somebody changed its row
// outside of the broker.
var ErrUnreadable = errors.New("the URL and the secrets of the webhook cannot be decrypted")

// place returns the additional data with which the content of a webhook is sealed, so that it cannot be decrypted as the
// content of another webhook.
func place(id string) string { return "webhook " + id }

// Sealed returns the column with the sealed contents, for key rotation.
func Sealed() storage.SealedColumn {
	return storage.SealedColumn{Table: "webhooks", Column: "content", Place: place}
}

// Secrets contains the secrets with which messages are signed, in the form whsec_BASE64.
type Secrets struct {
	Current secret.String
	// Previous is the secret before the last rotation, or empty if there was none. Until PreviousUntil, messages are also signed with
	// it.
	Previous      secret.String
	PreviousUntil time.Time
}

// Webhook describes a receiver of events.
type Webhook struct {
	ID      string
	URL     secret.String // may contain a token
	Secrets Secrets
	// Unreadable reports that URL and Secrets are empty, because they cannot be decrypted.
	Unreadable bool
	// Filter selects the events that the webhook receives.
	Filter eventlog.Filter
	// Position is the position of the last event that was either turned into a delivery or not selected by the filter.
	Position  int64
	CreatedAt time.Time
	// DisabledAt is zero if the webhook is enabled.
	DisabledAt     time.Time
	DisabledReason string
	// DeliveredAt is the time of the last delivery, or zero.
	DeliveredAt time.Time
	// MissedAt is when Add or Enable last skipped events that retention had removed, or zero.
	MissedAt time.Time
}

// content is the sealed part of a webhook.
type content struct {
	URL           string    `json:"url"`
	Current       string    `json:"current"`
	Previous      string    `json:"previous,omitempty"`
	PreviousUntil time.Time `json:"previousUntil,omitzero"`
}

// row is a row of webhooks.
type row struct {
	ID             string       `db:"id"`
	Content        string       `db:"content"`
	Types          string       `db:"types"`
	Account        string       `db:"account"`
	Position       int64        `db:"position"`
	CreatedAt      storage.Time `db:"created_at"`
	DisabledAt     storage.Time `db:"disabled_at"`
	DisabledReason string       `db:"disabled_reason"`
	DeliveredAt    storage.Time `db:"delivered_at"`
	MissedAt       storage.Time `db:"missed_at"`
}

// countLock is the key of the lock on the number of webhooks. The keys of other locks are hashes.
const countLock = 0x776562686f6f6b73 // "webhooks"

const columns = `id, content, types, account, position, created_at, disabled_at, disabled_reason, delivered_at, missed_at`

// webhook returns the webhook. If its content cannot be decrypted, the error is ErrUnreadable, and the result has the other fields.
func (s *Store) webhook(row row) (Webhook, error) {
	found := Webhook{
		ID: row.ID, Filter: eventlog.Filter{Account: row.Account}, Position: row.Position, CreatedAt: row.CreatedAt.Time,
		DisabledAt: row.DisabledAt.Time, DisabledReason: row.DisabledReason, DeliveredAt: row.DeliveredAt.Time, MissedAt: row.MissedAt.Time,
	}

	for name := range strings.FieldsSeq(row.Types) {
		found.Filter.Types = append(found.Filter.Types, eventlog.Type(name))
	}

	var sealed content

	plain, err := s.keys.Open(row.Content, place(row.ID))
	if err == nil && json.Unmarshal(plain, &sealed) != nil {
		err = errors.New("the content is invalid") // the cause could quote a secret
	}

	if err != nil {
		found.Unreadable = true

		return found, fmt.Errorf("reading webhook %s: %w: %w", row.ID, ErrUnreadable, err)
	}

	found.URL = secret.String(sealed.URL)
	found.Secrets = Secrets{
		Current: secret.String(sealed.Current), Previous: secret.String(sealed.Previous), PreviousUntil: sealed.PreviousUntil,
	}

	return found, nil
}

// sealed returns the envelope that contains the URL and the secrets.
func (s *Store) sealed(webhook Webhook) (string, error) {
	plain, err := json.Marshal(content{
		webhook.URL.Reveal(), webhook.Secrets.Current.Reveal(), webhook.Secrets.Previous.Reveal(), webhook.Secrets.PreviousUntil,
	})
	if err != nil {
		return "", errors.New("encoding a webhook") // the cause could quote a secret
	}

	return s.keys.Seal(plain, place(webhook.ID)), nil
}

// Create adds a webhook. The webhook receives only events that are added to the log after the webhook was created.
func (s *Store) Create(ctx context.Context, tx storage.Tx, webhook Webhook) error {
	content, err := s.sealed(webhook)
	if err != nil {
		return err
	}

	types := make([]string, 0, len(webhook.Filter.Types))
	for _, each := range webhook.Filter.Types {
		types = append(types, string(each))
	}

	_, err = storage.Exec(ctx, tx, `INSERT INTO webhooks (id, content, types, account, position, created_at, disabled_reason, lease_owner)
		SELECT ?, ?, ?, ?, position, ?, '', '' FROM events_head WHERE id = 1`,
		webhook.ID, content, strings.Join(types, " "), webhook.Filter.Account, storage.At(webhook.CreatedAt))

	return failure.While(err, "adding a webhook")
}

// Get returns a webhook, or storage.ErrNotFound. If its content cannot be decrypted, Get returns ErrUnreadable and the other fields.
func (s *Store) Get(ctx context.Context, tx storage.Tx, id string) (Webhook, error) {
	row, err := storage.Get[row](ctx, tx, `SELECT `+columns+` FROM webhooks WHERE id = ?`, id)
	if err != nil {
		return Webhook{}, fmt.Errorf("reading webhook %s: %w", id, err)
	}

	return s.webhook(row)
}

// Current is like Get, but outside of a transaction.
func (s *Store) Current(ctx context.Context, id string) (Webhook, error) {
	return s.Get(ctx, s.db.Reader(), id)
}

// List returns all webhooks, oldest first. It includes those whose contents cannot be decrypted.
func (s *Store) List(ctx context.Context) ([]Webhook, error) {
	rows, err := storage.Select[row](ctx, s.db.Reader(), `SELECT `+columns+` FROM webhooks ORDER BY created_at, id`)
	if err != nil {
		return nil, failure.While(err, "listing webhooks")
	}

	listed := make([]Webhook, 0, len(rows))

	for _, row := range rows {
		webhook, _ := s.webhook(row) // Unreadable shows the error

		listed = append(listed, webhook)
	}

	return listed, nil
}

// LockCount returns the number of webhooks. Other transactions that call it wait until the caller's transaction ends, so together
// they cannot exceed a limit that each of them checks before Create.
func (s *Store) LockCount(ctx context.Context, tx storage.Tx) (int, error) {
	if s.db.Driver() == storage.DriverPostgres { // SQLite has only one writer at a time
		if _, err := storage.Exec(ctx, tx, `SELECT pg_advisory_xact_lock(?)`, countLock); err != nil {
			return 0, failure.While(err, "locking the number of webhooks")
		}
	}

	count, err := storage.Get[int](ctx, tx, `SELECT count(*) FROM webhooks`)

	return count, failure.While(err, "counting webhooks")
}

// Delete removes a webhook and its deliveries. It reports false if the webhook does not exist.
func (s *Store) Delete(ctx context.Context, tx storage.Tx, id string) (bool, error) {
	removed, err := storage.Exec(ctx, tx, `DELETE FROM webhooks WHERE id = ?`, id)

	return removed == 1, failure.While(err, "removing webhook %s", id)
}

// Lock is like Get, but also locks the webhook until the transaction ends.
func (s *Store) Lock(ctx context.Context, tx storage.Tx, id string) (Webhook, error) {
	row, err := storage.Get[row](ctx, tx, `SELECT `+columns+` FROM webhooks WHERE id = ?`+s.db.ForUpdate(), id)
	if err != nil {
		return Webhook{}, fmt.Errorf("reading webhook %s: %w", id, err)
	}

	return s.webhook(row)
}

// SetSecrets replaces the secrets of a webhook that the transaction has locked.
func (s *Store) SetSecrets(ctx context.Context, tx storage.Tx, webhook Webhook) error {
	content, err := s.sealed(webhook)
	if err == nil {
		_, err = storage.Exec(ctx, tx, `UPDATE webhooks SET content = ? WHERE id = ?`, content, webhook.ID)
	}

	return failure.While(err, "changing the secrets of webhook %s", webhook.ID)
}

// Enable resumes the deliveries to the webhook. If retention has removed events that the receiver had not confirmed when the webhook
// was disabled, or later events, Enable sets MissedAt.
func (s *Store) Enable(ctx context.Context, tx storage.Tx, id string, now time.Time) error {
	_, err := storage.Exec(ctx, tx, `UPDATE webhooks SET disabled_at = NULL, disabled_reason = '', pending_from = NULL, missed_at = CASE
			WHEN disabled_at IS NOT NULL AND COALESCE(pending_from, position + 1) <= (SELECT removed FROM events_head WHERE id = 1)
			THEN ? ELSE missed_at END
		WHERE id = ?`, storage.At(now), id)

	return failure.While(err, "enabling webhook %s", id)
}

// Disable stops the deliveries to the webhook until it is enabled.
func (s *Store) Disable(ctx context.Context, id, reason string, now time.Time) error {
	_, err := storage.Exec(ctx, s.db.Writer(), `UPDATE webhooks SET disabled_at = ?, disabled_reason = ?,
			pending_from = (SELECT min(position) FROM webhook_deliveries WHERE webhook_id = ? AND NOT dead)
		WHERE id = ? AND disabled_at IS NULL`, storage.At(now), reason, id, id)

	return failure.While(err, "disabling webhook %s", id)
}
