package runtimes

import (
	"cmp"
	"context"
	"embed"
	"encoding/json"
	"fmt"
	"time"

	"github.com/environment-broker/environment-broker/internal/failure"
	"github.com/environment-broker/environment-broker/internal/secret"
	"github.com/environment-broker/environment-broker/storage"
)

//go:embed migrations/*.sql
var migrations embed.FS

// Runtime is a cluster that was ordered from the Provisioner. Operations store a Runtime in their payloads with these JSON names,
// which must therefore not change.
type Runtime struct {
	ID string `db:"id" json:"id"`
	// Tenant and SubAccount are the IDs of the owner in the form that they have in labels, see package tenancy. Two runtimes have the
	// same owner if their Tenant values are equal.
	Tenant     string `db:"tenant"     json:"tenant"`
	SubAccount string `db:"subaccount" json:"subAccount"`
	// OriginalTenant and OriginalSubAccount are the IDs that the client sent. Each is set only if it is not valid as a label and
	// therefore differs from Tenant or SubAccount.
	OriginalTenant     string `db:"original_tenant"     json:"originalTenant,omitempty"`
	OriginalSubAccount string `db:"original_subaccount" json:"originalSubAccount,omitempty"`
	// ShootName is unique among the runtimes that are not deleted.
	ShootName string `db:"shoot_name" json:"shootName"`
	// ProvisionedBy is the ID of the operation that was accepted together with the runtime.
	ProvisionedBy string `db:"provisioned_by" json:"provisionedBy"`
	// Configuration is the ordered configuration, as JSON. It may contain secrets and is encrypted in the database.
	Configuration json.RawMessage `db:"-" json:"configuration"`
	CreatedAt     time.Time       `db:"-" json:"createdAt"`
	// DeletedAt is the time at which an operation found that the cluster was gone. It is zero if the runtime is not deleted.
	DeletedAt time.Time `db:"-" json:"deletedAt"`

	// Provider and Region are the cloud provider and its region in the configuration. They are stored in plaintext so that lists can
	// show them. Operations do not store them in their payloads. In a row that an older replica has inserted, they are empty until
	// SetRegion sets them.
	Provider string `db:"provider" json:"-"`
	Region   string `db:"region"   json:"-"`
}

// Account returns the original ID of the tenant, which all systems except Gardener use.
func (r Runtime) Account() string { return cmp.Or(r.OriginalTenant, r.Tenant) }

// Store reads and writes runtimes, idempotency keys and registrations. Its methods may be called from any goroutine.
type Store struct {
	db   *storage.DB
	keys *secret.Keyring
}

// Open migrates the tables and returns the store.
func Open(ctx context.Context, db *storage.DB, keys *secret.Keyring) (*Store, error) {
	if err := db.Migrate(ctx, "provisioner", migrations, "migrations"); err != nil {
		return nil, err
	}

	return &Store{db: db, keys: keys}, nil
}

// row is a row of the runtimes table. It redefines those fields of Runtime that the table stores with a different type.
type row struct {
	Runtime

	Configuration string       `db:"configuration"`
	CreatedAt     storage.Time `db:"created_at"`
	DeletedAt     storage.Time `db:"deleted_at"`
}

// runtime converts the row to a Runtime without its configuration.
func (r row) runtime() Runtime {
	runtime := r.Runtime
	runtime.CreatedAt, runtime.DeletedAt = r.CreatedAt.Time, r.DeletedAt.Time

	return runtime
}

// configurationPlace returns the additional data with which the configuration of a runtime is sealed, so that it cannot be
// decrypted as the configuration of another runtime.
func configurationPlace(id string) string { return "configuration of runtime " + id }

// Sealed returns the column with the sealed configurations, for key rotation.
func Sealed() storage.SealedColumn {
	return storage.SealedColumn{
		Table: "runtimes", Column: "configuration", Place: configurationPlace,
		Bound: []string{"tenant", "subaccount", "original_tenant", "original_subaccount", "shoot_name", "provisioned_by"},
	}
}

// boundColumns returns the values of the columns that determine which tenant the cluster belongs to. These values never change.
func boundColumns(runtime Runtime) storage.Bound {
	return storage.Bound{
		"tenant": runtime.Tenant, "subaccount": runtime.SubAccount,
		"original_tenant": runtime.OriginalTenant, "original_subaccount": runtime.OriginalSubAccount,
		"shoot_name": runtime.ShootName, "provisioned_by": runtime.ProvisionedBy,
	}
}

// seal returns an envelope with the runtime's configuration and the values of its bound columns. Older releases read only the
// configuration.
func (s *Store) seal(runtime Runtime) (string, error) {
	plain, err := boundColumns(runtime).Prepend(runtime.Configuration)
	if err != nil {
		return "", fmt.Errorf("sealing the configuration of runtime %s: %w", runtime.ID, err)
	}

	return s.keys.Seal(plain, configurationPlace(runtime.ID)), nil
}

// Insert adds a runtime in the caller's transaction. If a runtime that is not deleted has the same Shoot name, or if any runtime
// has the same ID, Insert changes nothing and reports false. The transaction can then continue.
func (s *Store) Insert(ctx context.Context, tx storage.Tx, runtime Runtime) (bool, error) {
	sealed, err := s.seal(runtime)
	if err != nil {
		return false, err
	}

	inserted, err := storage.Exec(ctx, tx, `INSERT INTO runtimes
		(id, tenant, subaccount, original_tenant, original_subaccount, shoot_name, provisioned_by, configuration, created_at, provider, region)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING`,
		runtime.ID, runtime.Tenant, runtime.SubAccount, runtime.OriginalTenant, runtime.OriginalSubAccount,
		runtime.ShootName, runtime.ProvisionedBy,
		sealed, storage.At(runtime.CreatedAt),
		runtime.Provider, runtime.Region)

	return inserted == 1, failure.While(err, "inserting runtime %s", runtime.ID)
}

// listedColumns lists all columns of a runtime except the sealed configuration.
const listedColumns = `runtimes.id, runtimes.tenant, subaccount, shoot_name, provisioned_by, runtimes.created_at, deleted_at,
	original_tenant, original_subaccount, COALESCE(provider, '') AS provider, COALESCE(region, '') AS region`

// Get returns a runtime, whether deleted or not. If there is none, the error is storage.ErrNotFound. If a bound column was changed
// outside of the service, the error is storage.ErrChangedColumn.
func (s *Store) Get(ctx context.Context, tx storage.Tx, id string) (Runtime, error) {
	return s.find(ctx, tx, `id = ?`, id)
}

// Exists reports whether there is a runtime with the given ID that is not deleted.
func (s *Store) Exists(ctx context.Context, tx storage.Tx, id string) (bool, error) {
	found, err := storage.Select[int](ctx, tx, `SELECT 1 FROM runtimes WHERE id = ? AND deleted_at IS NULL`, id)
	if err != nil {
		return false, fmt.Errorf("finding runtime %s: %w", id, err)
	}

	return len(found) > 0, nil
}

// OfShoot returns the runtime that owns the Shoot with the given name, or storage.ErrNotFound. It ignores deleted runtimes.
func (s *Store) OfShoot(ctx context.Context, tx storage.Tx, name string) (Runtime, error) {
	return s.find(ctx, tx, `shoot_name = ? AND deleted_at IS NULL`, name)
}

func (s *Store) find(ctx context.Context, tx storage.Tx, where, value string) (Runtime, error) {
	row, err := storage.Get[row](ctx, tx, `SELECT `+listedColumns+`, configuration FROM runtimes WHERE `+where, value)
	if err != nil {
		return Runtime{}, fmt.Errorf("reading runtime %s: %w", value, err)
	}

	plain, err := s.keys.Open(row.Configuration, configurationPlace(row.ID))
	if err != nil {
		return Runtime{}, fmt.Errorf("reading runtime %s: %w", row.ID, err)
	}

	configuration, bound, err := storage.CutBound(plain)
	if err == nil {
		err = bound.Check(boundColumns(row.Runtime))
	}

	if err != nil {
		return Runtime{}, fmt.Errorf("reading runtime %s: %w", row.ID, err)
	}

	found := row.runtime()
	found.Configuration = configuration

	return found, nil
}

// Reader returns a Tx for reads outside of a transaction.
func (s *Store) Reader() storage.Tx { return s.db.Reader() }

// Lock locks the runtime until the caller's transaction ends.
func (s *Store) Lock(ctx context.Context, tx storage.Tx, id string) error {
	// This UPDATE changes nothing, but takes the row lock on PostgreSQL and the write lock on SQLite.
	_, err := storage.Exec(ctx, tx, `UPDATE runtimes SET tenant = tenant WHERE id = ?`, id)

	return failure.While(err, "locking runtime %s", id)
}

// Reconfigure stores the configuration, provider and region of a runtime in the caller's transaction. Unlike Configured, which is
// for steps, it also overwrites a configuration that a later operation has recorded.
func (s *Store) Reconfigure(ctx context.Context, tx storage.Tx, runtime Runtime) error {
	sealed, err := s.seal(runtime)
	if err != nil {
		return err
	}

	_, err = storage.Exec(ctx, tx, `UPDATE runtimes SET configuration = ?, provider = ?, region = ? WHERE id = ?`,
		sealed, runtime.Provider, runtime.Region, runtime.ID)

	return failure.While(err, "reconfiguring runtime %s", runtime.ID)
}

// Configured records the configuration that an operation has applied to its runtime. position is the Position of the operation.
// If a later operation has already recorded a configuration, Configured changes nothing. This happens if the step of the earlier
// operation runs late, on a replica that was frozen. Configured does not write the provider and the region, because no step
// changes them.
func (s *Store) Configured(ctx context.Context, runtime Runtime, position int64) error {
	sealed, err := s.seal(runtime)
	if err != nil {
		return err
	}

	_, err = storage.Exec(ctx, s.db.Writer(),
		`UPDATE runtimes SET configuration = ?, configured_by = ? WHERE id = ? AND configured_by <= ?`,
		sealed, position, runtime.ID, position)

	return failure.While(err, "recording the configuration of runtime %s", runtime.ID)
}

// DeletedAmong returns the given IDs that belong to deleted runtimes.
func (s *Store) DeletedAmong(ctx context.Context, ids []string) ([]string, error) {
	if len(ids) == 0 {
		return nil, nil
	}

	deleted, err := storage.Select[string](ctx, s.db.Reader(),
		`SELECT id FROM runtimes WHERE id IN (?) AND deleted_at IS NOT NULL`, ids)

	return deleted, failure.While(err, "reading which runtimes are deleted")
}

// MarkDeleted records that the cluster of a runtime is gone. The name of its Shoot can then be used by a new runtime. If it is
// called again, the time of the first call stays.
func (s *Store) MarkDeleted(ctx context.Context, id string, at time.Time) error {
	_, err := storage.Exec(ctx, s.db.Writer(),
		`UPDATE runtimes SET deleted_at = ? WHERE id = ? AND deleted_at IS NULL`, storage.At(at), id)

	return failure.While(err, "marking runtime %s as deleted", id)
}

// Recall returns the ID of the operation that Remember has stored for the tenant's idempotency key, or storage.ErrNotFound.
func (s *Store) Recall(ctx context.Context, tx storage.Tx, tenant, key string) (string, error) {
	kept, err := storage.Get[string](ctx, tx,
		`SELECT operation_id FROM idempotency_keys WHERE tenant = ? AND key = ?`, tenant, key)
	if err != nil {
		return "", fmt.Errorf("reading an idempotency key: %w", err)
	}

	return kept, nil
}

// Remember stores the idempotency key of a request together with the ID of the operation that the request started, in the caller's
// transaction, and returns this ID. If the tenant has used the key before, Remember changes nothing and returns the ID of the
// earlier operation. An empty key is not stored.
func (s *Store) Remember(ctx context.Context, tx storage.Tx, tenant, key, operationID string, at time.Time) (string, error) {
	if key == "" {
		return operationID, nil
	}

	if _, err := storage.Exec(ctx, tx, `INSERT INTO idempotency_keys (tenant, key, operation_id, created_at)
		VALUES (?, ?, ?, ?) ON CONFLICT (tenant, key) DO NOTHING`, tenant, key, operationID, storage.At(at)); err != nil {
		return "", fmt.Errorf("storing an idempotency key: %w", err)
	}

	return s.Recall(ctx, tx, tenant, key)
}

// Reassign assigns the tenant's idempotency key to another operation, in the caller's transaction, for example to a later order
// for the same runtime. Later requests with the key then return that operation.
func (s *Store) Reassign(ctx context.Context, tx storage.Tx, tenant, key, operationID string) error {
	_, err := storage.Exec(ctx, tx, `UPDATE idempotency_keys SET operation_id = ? WHERE tenant = ? AND key = ?`,
		operationID, tenant, key)

	return failure.While(err, "storing an idempotency key")
}
