package endpoints

import (
	"context"
	"embed"
	"encoding/json"
	"fmt"
	"time"

	"github.com/environment-broker/environment-broker/internal/environment"
	"github.com/environment-broker/environment-broker/internal/failure"
	"github.com/environment-broker/environment-broker/internal/secret"
	"github.com/environment-broker/environment-broker/storage"
)

//go:embed migrations/*.sql
var migrations embed.FS

// Store reads and writes endpoints, which it seals. Its methods may be called from any goroutine.
type Store struct {
	db   *storage.DB
	keys *secret.Keyring
}

// Open migrates the table and returns the store. The instances table must exist.
func Open(ctx context.Context, db *storage.DB, keys *secret.Keyring) (*Store, error) {
	if err := db.Migrate(ctx, "endpoints", migrations, "migrations"); err != nil {
		return nil, err
	}

	return &Store{db: db, keys: keys}, nil
}

// place returns the additional data with which an endpoint is sealed, so that it cannot be decrypted as the endpoint of another
// instance.
func place(instanceID string) string { return "endpoint of instance " + instanceID }

// Sealed returns the column with the sealed endpoints, for key rotation. The column is empty in rows for which Set has not been
// called yet.
func Sealed() storage.SealedColumn {
	return storage.SealedColumn{Table: "endpoints", Column: "endpoint", Place: place}
}

// content is the sealed form of an endpoint.
type content struct {
	environment.Endpoint

	RuntimeID string `json:"runtimeID"`
}

// Get returns the endpoint of the instance's runtime. The error is storage.ErrNotFound if the instance has no runtime, or if the
// endpoint of this runtime is not stored.
func (s *Store) Get(ctx context.Context, instance environment.Instance) (environment.Endpoint, error) {
	envelope, err := storage.Get[string](ctx, s.db.Reader(), `SELECT endpoint FROM endpoints WHERE id = ?`, instance.ID)
	if err == nil && envelope == "" {
		err = storage.ErrNotFound
	}

	if err != nil {
		return environment.Endpoint{}, fmt.Errorf("reading the endpoint of instance %s: %w", instance.ID, err)
	}

	plain, err := s.keys.Open(envelope, place(instance.ID))
	if err != nil {
		return environment.Endpoint{}, fmt.Errorf("reading the endpoint of instance %s: %w", instance.ID, err)
	}

	var found content
	if err := json.Unmarshal(plain, &found); err != nil {
		return environment.Endpoint{}, fmt.Errorf("decoding the endpoint of instance %s: %w", instance.ID, err)
	}

	if instance.RuntimeID == "" || found.RuntimeID != instance.RuntimeID {
		return environment.Endpoint{}, fmt.Errorf("the runtime of instance %s has no stored endpoint: %w", instance.ID, storage.ErrNotFound)
	}

	return found.Endpoint, nil
}

// Set stores the endpoint of the instance's runtime, and the time at which the endpoint is due for a refresh.
func (s *Store) Set(ctx context.Context, instance environment.Instance, endpoint environment.Endpoint, due time.Time) error {
	plain, err := json.Marshal(content{Endpoint: endpoint, RuntimeID: instance.RuntimeID})
	if err != nil {
		return fmt.Errorf("encoding the endpoint of instance %s: %w", instance.ID, err)
	}

	_, err = storage.Exec(ctx, s.db.Writer(), `INSERT INTO endpoints (id, endpoint, due_at) VALUES (?, ?, ?)
		ON CONFLICT (id) DO UPDATE SET endpoint = excluded.endpoint, due_at = excluded.due_at`,
		instance.ID, s.keys.Seal(plain, place(instance.ID)), storage.At(due))

	return failure.While(err, "storing the endpoint of instance %s", instance.ID)
}

// AddMissing reads a page of instances, starting after the given instance ID. For each instance that has a runtime but no row, it
// adds an empty row that is due at the given time. Replicas of earlier versions create such instances. The result is the
// same as for storage.Missing.AddPage.
func (s *Store) AddMissing(ctx context.Context, due time.Time, after string) (next string, err error) {
	return storage.Missing{
		Table: "endpoints", Key: "id", Condition: `runtime_id <> ''`,
		Add: func(ctx context.Context, tx storage.Tx, instanceID string) error {
			return s.Add(ctx, tx, instanceID, due)
		},
	}.AddPage(ctx, s.db, after)
}

// Add adds an empty row for an instance, due at the given time, in the caller's transaction. If the row already exists, Add
// changes nothing.
func (s *Store) Add(ctx context.Context, tx storage.Tx, instanceID string, due time.Time) error {
	_, err := storage.Exec(ctx, tx, `INSERT INTO endpoints (id, endpoint, due_at) VALUES (?, '', ?) ON CONFLICT (id) DO NOTHING`,
		instanceID, storage.At(due))

	return failure.While(err, "adding the endpoint of instance %s", instanceID)
}

// Due is an endpoint that is due for a refresh.
type Due struct {
	InstanceID string       `db:"id"`
	At         storage.Time `db:"due_at"`
}

// ListDue returns at most limit endpoints that are due at the given time, sorted by due time.
func (s *Store) ListDue(ctx context.Context, now time.Time, limit int) ([]Due, error) {
	due, err := storage.Select[Due](ctx, s.db.Reader(), `SELECT id, due_at FROM endpoints WHERE due_at <= ? ORDER BY due_at `+
		storage.Page(limit, 0), storage.At(now))

	return due, failure.While(err, "finding endpoints that are due")
}

// Postpone sets the time at which the endpoint is due for a refresh again. It changes nothing and reports false if another
// replica has changed the due time since ListDue returned the endpoint.
func (s *Store) Postpone(ctx context.Context, due Due, until time.Time) (bool, error) {
	changed, err := storage.Exec(ctx, s.db.Writer(), `UPDATE endpoints SET due_at = ? WHERE id = ? AND due_at = ?`,
		storage.At(until), due.InstanceID, due.At)

	return changed == 1, failure.While(err, "postponing the endpoint of instance %s", due.InstanceID)
}

// Remove deletes the endpoint of an instance that no longer has a runtime.
func (s *Store) Remove(ctx context.Context, instanceID string) error {
	_, err := storage.Exec(ctx, s.db.Writer(), `DELETE FROM endpoints WHERE id = ?
		AND NOT EXISTS (SELECT 1 FROM instances WHERE instances.id = endpoints.id AND instances.runtime_id <> '')`, instanceID)

	return failure.While(err, "removing the endpoint of instance %s", instanceID)
}
