package runtimes

import (
	"context"
	"embed"
	"encoding/json"
	"fmt"
	"io/fs"
	"time"

	"github.com/environment-broker/environment-broker/internal/secret"
	"github.com/environment-broker/environment-broker/storage"
)

//go:embed migrations/*.sql
var migrations embed.FS

// Runtime is a cluster that the Provisioner was asked for.
type Runtime struct {
	ID         string `json:"id"`
	Tenant     string `json:"tenant"`
	SubAccount string `json:"subAccount"`
	// ShootName is the name of the Shoot. Runtimes that are not deleted have different ones.
	ShootName string `json:"shootName"`
	// ProvisionedBy is the operation that was accepted with the runtime.
	ProvisionedBy string `json:"provisionedBy"`
	// Configuration is what was asked for, as JSON. It may hold secrets and is sealed at rest.
	Configuration json.RawMessage `json:"configuration"`
	CreatedAt     time.Time       `json:"createdAt"`
	// DeletedAt is when the cluster was found gone, or zero.
	DeletedAt time.Time `json:"deletedAt"`
}

// Store keeps runtimes.
type Store struct {
	db   *storage.DB
	keys *secret.Keyring
}

// Open brings the tables up to date and returns the store.
func Open(ctx context.Context, db *storage.DB, keys *secret.Keyring) (*Store, error) {
	files, err := fs.Sub(migrations, "migrations")
	if err != nil {
		return nil, fmt.Errorf("reading embedded migrations: %w", err)
	}

	if err := db.Migrate(ctx, "provisioner", files); err != nil {
		return nil, err
	}

	return &Store{db: db, keys: keys}, nil
}

// row is a runtime as the table has it.
type row struct {
	ID            string       `db:"id"`
	Tenant        string       `db:"tenant"`
	SubAccount    string       `db:"subaccount"`
	ShootName     string       `db:"shoot_name"`
	ProvisionedBy string       `db:"provisioned_by"`
	Configuration string       `db:"configuration"`
	CreatedAt     storage.Time `db:"created_at"`
	DeletedAt     storage.Time `db:"deleted_at"`
}

// configurationPlace binds a sealed configuration to its runtime.
func configurationPlace(id string) string { return "configuration of runtime " + id }

// Sealed is the column that is sealed.
func Sealed() storage.SealedColumn {
	return storage.SealedColumn{Table: "runtimes", Column: "configuration", Place: configurationPlace}
}

// Insert adds a runtime inside the caller's transaction. It reports false, and changes nothing, when a runtime that is not
// deleted has the name of its Shoot, or any runtime has its id.
func (s *Store) Insert(ctx context.Context, tx storage.Tx, runtime Runtime) (bool, error) {
	inserted, err := storage.SelectNamed[string](ctx, tx, `INSERT INTO runtimes
		(id, tenant, subaccount, shoot_name, provisioned_by, configuration, created_at)
		VALUES (:id, :tenant, :subaccount, :shoot_name, :provisioned_by, :configuration, :created_at)
		ON CONFLICT DO NOTHING RETURNING id`, row{
		ID:            runtime.ID,
		Tenant:        runtime.Tenant,
		SubAccount:    runtime.SubAccount,
		ShootName:     runtime.ShootName,
		ProvisionedBy: runtime.ProvisionedBy,
		Configuration: s.keys.Seal(runtime.Configuration, configurationPlace(runtime.ID)),
		CreatedAt:     storage.At(runtime.CreatedAt),
	})
	if err != nil {
		return false, fmt.Errorf("inserting runtime %s: %w", runtime.ID, err)
	}

	return len(inserted) == 1, nil
}

const columns = `id, tenant, subaccount, shoot_name, provisioned_by, configuration, created_at, deleted_at`

// Get returns a runtime, deleted or not, or storage.ErrNotFound.
func (s *Store) Get(ctx context.Context, tx storage.Tx, id string) (Runtime, error) {
	return s.find(ctx, tx, `id = ?`, id)
}

// OfShoot returns the runtime that has the Shoot of that name and is not deleted, or storage.ErrNotFound.
func (s *Store) OfShoot(ctx context.Context, tx storage.Tx, name string) (Runtime, error) {
	return s.find(ctx, tx, `shoot_name = ? AND deleted_at IS NULL`, name)
}

func (s *Store) find(ctx context.Context, tx storage.Tx, where, value string) (Runtime, error) {
	row, err := storage.Get[row](ctx, tx, `SELECT `+columns+` FROM runtimes WHERE `+where, value)
	if err != nil {
		return Runtime{}, fmt.Errorf("reading runtime %s: %w", value, err)
	}

	configuration, err := s.keys.Open(row.Configuration, configurationPlace(row.ID))
	if err != nil {
		return Runtime{}, fmt.Errorf("reading runtime %s: %w", row.ID, err)
	}

	return Runtime{
		ID:            row.ID,
		Tenant:        row.Tenant,
		SubAccount:    row.SubAccount,
		ShootName:     row.ShootName,
		ProvisionedBy: row.ProvisionedBy,
		Configuration: configuration,
		CreatedAt:     row.CreatedAt.Time,
		DeletedAt:     row.DeletedAt.Time,
	}, nil
}

// Reader is for reads outside of a transaction.
func (s *Store) Reader() storage.Tx { return s.db.Reader() }

// Lock keeps everybody else from locking the runtime until the caller's transaction ends.
func (s *Store) Lock(ctx context.Context, tx storage.Tx, id string) error {
	// An update that changes nothing: both databases lock the row for it.
	if _, err := storage.Exec(ctx, tx, `UPDATE runtimes SET tenant = tenant WHERE id = ?`, id); err != nil {
		return fmt.Errorf("locking runtime %s: %w", id, err)
	}

	return nil
}

// Reconfigure stores the runtime's configuration inside the caller's transaction.
func (s *Store) Reconfigure(ctx context.Context, tx storage.Tx, runtime Runtime) error {
	sealed := s.keys.Seal(runtime.Configuration, configurationPlace(runtime.ID))

	if _, err := storage.Exec(ctx, tx, `UPDATE runtimes SET configuration = ? WHERE id = ?`, sealed, runtime.ID); err != nil {
		return fmt.Errorf("reconfiguring runtime %s: %w", runtime.ID, err)
	}

	return nil
}

// Configured records what the cluster was made by an operation. What an operation of an earlier position records comes late, from a
// replica that was frozen, and changes nothing.
func (s *Store) Configured(ctx context.Context, id string, configuration json.RawMessage, position int64) error {
	sealed := s.keys.Seal(configuration, configurationPlace(id))

	if _, err := storage.Exec(ctx, s.db.Writer(), `UPDATE runtimes SET configuration = ?, configured_by = ? WHERE id = ? AND configured_by <= ?`,
		sealed, position, id, position); err != nil {
		return fmt.Errorf("recording the configuration of runtime %s: %w", id, err)
	}

	return nil
}

// DeletedAmong returns those of the runtimes that are recorded as gone.
func (s *Store) DeletedAmong(ctx context.Context, ids []string) ([]string, error) {
	if len(ids) == 0 {
		return nil, nil
	}

	gone, err := storage.Select[string](ctx, s.db.Reader(),
		`SELECT id FROM runtimes WHERE id IN (?) AND deleted_at IS NOT NULL`, ids)
	if err != nil {
		return nil, fmt.Errorf("reading which runtimes are gone: %w", err)
	}

	return gone, nil
}

// MarkDeleted records that the cluster of a runtime is gone. Its name is free from then on.
func (s *Store) MarkDeleted(ctx context.Context, id string, at time.Time) error {
	err := s.db.InTx(ctx, func(tx storage.Tx) error {
		_, err := storage.Exec(ctx, tx,
			`UPDATE runtimes SET deleted_at = ? WHERE id = ? AND deleted_at IS NULL`, storage.At(at), id)

		return err
	})
	if err != nil {
		return fmt.Errorf("marking runtime %s as deleted: %w", id, err)
	}

	return nil
}

// Recall returns the operation that the tenant's key stands for, or storage.ErrNotFound.
func (s *Store) Recall(ctx context.Context, tx storage.Tx, tenant, key string) (string, error) {
	kept, err := storage.Get[string](ctx, tx,
		`SELECT operation_id FROM idempotency_keys WHERE tenant = ? AND key = ?`, tenant, key)
	if err != nil {
		return "", fmt.Errorf("reading an idempotency key: %w", err)
	}

	return kept, nil
}

// Remember keeps the key of a call with the operation that it got, inside the caller's transaction. When the tenant has used the
// key before it changes nothing and returns the operation of then, else the one it was given.
func (s *Store) Remember(ctx context.Context, tx storage.Tx, tenant, key, operationID string, at time.Time) (string, error) {
	if key == "" {
		return operationID, nil
	}

	if _, err := storage.Exec(ctx, tx, `INSERT INTO idempotency_keys (tenant, key, operation_id, created_at)
		VALUES (?, ?, ?, ?) ON CONFLICT (tenant, key) DO NOTHING`, tenant, key, operationID, storage.At(at)); err != nil {
		return "", fmt.Errorf("keeping an idempotency key: %w", err)
	}

	return s.Recall(ctx, tx, tenant, key)
}

// Reassign has the tenant's key stand for another operation.
func (s *Store) Reassign(ctx context.Context, tx storage.Tx, tenant, key, operationID string) error {
	if _, err := storage.Exec(ctx, tx, `UPDATE idempotency_keys SET operation_id = ? WHERE tenant = ? AND key = ?`,
		operationID, tenant, key); err != nil {
		return fmt.Errorf("keeping an idempotency key: %w", err)
	}

	return nil
}
