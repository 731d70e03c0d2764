package outsideobjects

import (
	"context"
	"embed"
	"time"

	"github.com/environment-broker/environment-broker/internal/environment"
	"github.com/environment-broker/environment-broker/internal/failure"
	"github.com/environment-broker/environment-broker/internal/secret"
	"github.com/environment-broker/environment-broker/process"
	"github.com/environment-broker/environment-broker/storage"
	"github.com/environment-broker/environment-broker/storage/operations"
)

//go:embed migrations/*.sql
var migrations embed.FS

// columns lists the columns of row.
const columns = `instance_id, system, kind, object_key, state, updated_at, issued_at, expires_at, due_at, problem, renewing_until`

// row is a row of outside_objects.
type row struct {
	InstanceID string       `db:"instance_id"`
	System     string       `db:"system"`
	Kind       string       `db:"kind"`
	Key        string       `db:"object_key"`
	State      string       `db:"state"`
	UpdatedAt  storage.Time `db:"updated_at"`

	IssuedAt      storage.Time `db:"issued_at"`
	ExpiresAt     storage.Time `db:"expires_at"`
	DueAt         storage.Time `db:"due_at"`
	Problem       string       `db:"problem"`
	RenewingUntil storage.Time `db:"renewing_until"`
}

func (r row) object() environment.OutsideObject {
	return environment.OutsideObject{
		InstanceID: r.InstanceID, System: r.System, Kind: r.Kind, Key: r.Key, State: environment.OutsideState(r.State), UpdatedAt: r.UpdatedAt.Time,
		Credential: environment.Credential{
			IssuedAt: r.IssuedAt.Time, ExpiresAt: r.ExpiresAt.Time, RenewAt: r.DueAt.Time, Problem: r.Problem, RenewingUntil: r.RenewingUntil.Time,
		},
	}
}

// Store reads and writes the records of objects, and encrypts their configurations. Its methods may be called from any goroutine.
type Store struct {
	db   *storage.DB
	keys *secret.Keyring
}

// Open migrates the tables and returns the store. The operations table must exist.
func Open(ctx context.Context, db *storage.DB, keys *secret.Keyring) (*Store, error) {
	if err := db.Migrate(ctx, "outside_objects", migrations, "migrations"); err != nil {
		return nil, err
	}

	return &Store{db: db, keys: keys}, nil
}

// Set adds or replaces the record of an object. If object contains no new credential or configuration, the record keeps the
// previous one. Set ignores RenewingUntil. It returns process.ErrLeaseLost if the operation has lost its lease.
func (s *Store) Set(ctx context.Context, by process.Record, object environment.OutsideObject, now time.Time) error {
	statements := []storage.Statement{{
		Text: `INSERT INTO outside_objects (instance_id, system, kind, object_key, state, updated_at, issued_at, expires_at, due_at, problem)
			SELECT ?, ?, ?, ?, ?, ?, ?, ?, ?, ? FROM first WHERE true
			ON CONFLICT (instance_id, system, kind) DO UPDATE SET object_key = excluded.object_key, state = excluded.state,
			updated_at = excluded.updated_at, issued_at = coalesce(excluded.issued_at, outside_objects.issued_at),
			expires_at = coalesce(excluded.expires_at, outside_objects.expires_at), due_at = coalesce(excluded.due_at, outside_objects.due_at),
			problem = excluded.problem`,
		Args: []any{
			object.InstanceID, object.System, object.Kind, object.Key, string(object.State), storage.At(now), storage.At(object.Credential.IssuedAt),
			storage.At(object.Credential.ExpiresAt), storage.At(object.Credential.RenewAt), object.Credential.Problem,
		},
	}}
	if object.Configuration != "" {
		statements = append(statements, s.configure(object))
	}

	return s.fenced(ctx, by, statements...)
}

// Insert adds the record of an object that another program has created, or whose record was lost, in the caller's transaction. The
// instance must not yet have a record with the same system and kind.
func (s *Store) Insert(ctx context.Context, tx storage.Tx, object environment.OutsideObject, now time.Time) error {
	_, err := storage.Exec(ctx, tx, `INSERT INTO outside_objects (instance_id, system, kind, object_key, state, updated_at) VALUES (?, ?, ?, ?, ?, ?)`,
		object.InstanceID, object.System, object.Kind, object.Key, string(object.State), storage.At(now))

	return failure.While(err, "recording an object of instance %s in another system", object.InstanceID)
}

// Remove deletes the record of an object that is gone. It returns process.ErrLeaseLost if the operation has lost its lease.
func (s *Store) Remove(ctx context.Context, by process.Record, object environment.OutsideObject) error {
	statements := []storage.Statement{{
		Text: `DELETE FROM outside_objects WHERE instance_id = ? AND system = ? AND kind = ? AND EXISTS (SELECT 1 FROM first)`,
		Args: []any{object.InstanceID, object.System, object.Kind},
	}}
	if hasConfiguration(object) {
		statements = append(statements, storage.Statement{
			Text: `DELETE FROM outside_configurations WHERE id = ? AND EXISTS (SELECT 1 FROM first)`, Args: []any{object.InstanceID},
		})
	}

	return s.fenced(ctx, by, statements...)
}

// fenced executes the statements if the operation still has its lease, see operations.Fenced.
func (s *Store) fenced(ctx context.Context, by process.Record, statements ...storage.Statement) error {
	return failure.While(operations.Fenced(ctx, s.db, by, statements...), "recording an object in another system for operation %s", by.ID)
}

// OfInstance returns the records of an instance's objects, sorted by system and kind.
func (s *Store) OfInstance(ctx context.Context, instanceID string) ([]environment.OutsideObject, error) {
	return s.Recorded(ctx, s.db.Reader(), instanceID)
}

// Recorded is like OfInstance, but reads in the caller's transaction.
func (s *Store) Recorded(ctx context.Context, tx storage.Tx, instanceID string) ([]environment.OutsideObject, error) {
	rows, err := storage.Select[row](ctx, tx, `SELECT `+columns+` FROM outside_objects WHERE instance_id = ?
		ORDER BY system, kind`, instanceID)

	return objects(rows), failure.While(err, "reading the objects of instance %s in other systems", instanceID)
}

// Sharing returns the records in which other instances refer to the same object, sorted by instance.
func (s *Store) Sharing(ctx context.Context, object environment.OutsideObject) ([]environment.OutsideObject, error) {
	rows, err := storage.Select[row](ctx, s.db.Reader(), `SELECT `+columns+` FROM outside_objects
		WHERE system = ? AND object_key = ? AND kind = ? AND instance_id <> ? ORDER BY instance_id`,
		object.System, object.Key, object.Kind, object.InstanceID)

	return objects(rows), failure.While(err, "reading the instances that share an object in %s", object.System)
}

// Move assigns the records of an instance's objects to another key, in the caller's transaction. The new key must have no records.
// Move deletes the configuration, because the objects are now leftovers and will only be removed.
func (s *Store) Move(ctx context.Context, tx storage.Tx, instanceID, key string) error {
	_, err := storage.Exec(ctx, tx, `UPDATE outside_objects SET instance_id = ? WHERE instance_id = ?`, key, instanceID)
	if err == nil {
		err = removeConfiguration(ctx, tx, instanceID)
	}

	return failure.While(err, "moving the objects of instance %s in other systems", instanceID)
}

// Return assigns the records of a leftover's objects to the instance that uses the leftover's runtime again, in the caller's
// transaction. Objects whose removal was requested or abandoned become created ones, because the instance needs them. If the instance
// has a record with the same system and kind, Return removes the leftover's.
func (s *Store) Return(ctx context.Context, tx storage.Tx, key, instanceID string) error {
	_, err := storage.Exec(ctx, tx, `UPDATE outside_objects SET instance_id = ?,
			state = CASE WHEN state IN (?, ?) AND object_key <> '' THEN ? ELSE state END
		WHERE instance_id = ? AND NOT EXISTS (SELECT 1 FROM outside_objects AS own
			WHERE own.instance_id = ? AND own.system = outside_objects.system AND own.kind = outside_objects.kind)`,
		instanceID, string(environment.OutsideRemoving), string(environment.OutsideLeftOver), string(environment.OutsideCreated), key, instanceID)
	if err != nil {
		return failure.While(err, "returning objects in other systems to instance %s", instanceID)
	}

	return s.RemoveAll(ctx, tx, key)
}

// RemoveAll removes the records of all objects of an instance, in the caller's transaction.
func (s *Store) RemoveAll(ctx context.Context, tx storage.Tx, instanceID string) error {
	_, err := storage.Exec(ctx, tx, `DELETE FROM outside_objects WHERE instance_id = ?`, instanceID)
	if err == nil {
		err = removeConfiguration(ctx, tx, instanceID)
	}

	return failure.While(err, "removing the records of the objects that instance %s has in other systems", instanceID)
}

// OfInstances returns the records of several instances' objects, sorted by instance, system and kind. Pass at most the IDs of one
// page, because databases limit the number of parameters.
func (s *Store) OfInstances(ctx context.Context, instanceIDs []string) ([]environment.OutsideObject, error) {
	if len(instanceIDs) == 0 {
		return nil, nil
	}

	rows, err := storage.Select[row](ctx, s.db.Reader(), `SELECT `+columns+` FROM outside_objects WHERE instance_id IN (?)
		ORDER BY instance_id, system, kind`, instanceIDs)

	return objects(rows), failure.While(err, "reading the objects of instances in other systems")
}

// Among returns the given keys for which there are records. Keys are instance IDs or leftover keys.
func (s *Store) Among(ctx context.Context, tx storage.Tx, keys []string) ([]string, error) {
	if len(keys) == 0 {
		return nil, nil
	}

	found, err := storage.Select[string](ctx, tx, `SELECT DISTINCT instance_id FROM outside_objects WHERE instance_id IN (?)`, keys)

	return found, failure.While(err, "finding objects in other systems")
}

func objects(rows []row) []environment.OutsideObject {
	var found []environment.OutsideObject
	for _, row := range rows {
		found = append(found, row.object())
	}

	return found
}
