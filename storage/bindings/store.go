package bindings

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

// Store reads and writes bindings, and encrypts their credentials. Its methods may be called from any goroutine.
type Store struct {
	db   *storage.DB
	keys *secret.Keyring
}

// Open migrates the table and returns the store. The instances and operations tables must exist.
func Open(ctx context.Context, db *storage.DB, keys *secret.Keyring) (*Store, error) {
	if err := db.Migrate(ctx, "bindings", migrations, "migrations"); err != nil {
		return nil, err
	}

	return &Store{db: db, keys: keys}, nil
}

// accessPlace returns the additional data with which a binding's credentials are sealed, so that they cannot be decrypted as the
// credentials of another binding.
func accessPlace(id string) string { return "access of binding " + id }

// Sealed returns the column with the sealed credentials, for key rotation.
func Sealed() storage.SealedColumn {
	return storage.SealedColumn{
		Table: "bindings", Column: "access", Place: accessPlace, Bound: []string{"instance_id", "binding_id", "runtime_id", "role"},
	}
}

// boundColumns returns the values of the columns that determine who may read the credentials, and which runtime the credentials
// are for. These values never change.
func boundColumns(binding environment.Binding) storage.Bound {
	return storage.Bound{
		"instance_id": binding.InstanceID, "binding_id": binding.BindingID, "runtime_id": binding.RuntimeID, "role": string(binding.Role),
	}
}

// row is a row of the bindings table. It redefines those fields of Binding that the table stores with a different type. Lifetime
// is in seconds.
type row struct {
	environment.Binding

	Lifetime  int64        `db:"lifetime"`
	Access    string       `db:"access"`
	CreatedAt storage.Time `db:"created_at"`
	ExpiresAt storage.Time `db:"expires_at"`
}

// Insert adds a binding in the caller's transaction. If the instance already has a binding with the same BindingID that is not
// being removed, Insert returns an error for which storage.IsDuplicate is true.
func (s *Store) Insert(ctx context.Context, tx storage.Tx, binding environment.Binding) error {
	access, err := s.seal(binding, binding.Access)
	if err != nil {
		return err
	}

	_, err = storage.Exec(ctx, tx, `INSERT INTO bindings (id, instance_id, binding_id, runtime_id, role, lifetime, predecessor,
			app_guid, created_by, state, operation_id, access, created_at, expires_at)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
		binding.ID, binding.InstanceID, binding.BindingID, binding.RuntimeID, string(binding.Role), int64(binding.Lifetime/time.Second),
		binding.Predecessor, binding.AppGUID, binding.CreatedBy, string(binding.State), binding.OperationID, access,
		storage.At(binding.CreatedAt), storage.At(binding.ExpiresAt))

	return failure.While(err, "inserting binding %s", binding.ID)
}

// SaveAccess stores the credentials of a binding that is being created, in the transaction that ends the operation. The binding
// is then ready. If the binding is being removed, or if a replica of an earlier version has already stored the credentials,
// SaveAccess changes nothing and returns no error. If the binding is gone, the error is storage.ErrNotFound.
func (s *Store) SaveAccess(ctx context.Context, tx storage.Tx, binding environment.Binding, access environment.Access) error {
	sealed, err := s.seal(binding, access)
	if err != nil {
		return err
	}

	found, err := storage.Exec(ctx, tx, `UPDATE bindings SET
			access = CASE WHEN state = 'creating' THEN ? ELSE access END,
			expires_at = CASE WHEN state = 'creating' THEN ? ELSE expires_at END,
			state = CASE WHEN state = 'creating' THEN 'ready' ELSE state END
		WHERE id = ?`, sealed, storage.At(access.ExpiresAt), binding.ID)
	if err == nil && found == 0 {
		err = storage.ErrNotFound
	}

	return failure.While(err, "storing the credentials of binding %s", binding.ID)
}

// MarkDeleting makes the operation responsible for the removal of the binding, in the caller's transaction. If the binding's
// operation or state has changed since the caller read it, MarkDeleting changes nothing and reports false. For example, the
// creation of the binding may have succeeded in the meantime.
func (s *Store) MarkDeleting(ctx context.Context, tx storage.Tx, binding environment.Binding, operationID string) (bool, error) {
	marked, err := storage.Exec(ctx, tx, `UPDATE bindings SET state = 'deleting', operation_id = ?
		WHERE id = ? AND operation_id = ? AND state = ?`, operationID, binding.ID, binding.OperationID, string(binding.State))

	return marked == 1, failure.While(err, "marking binding %s for removal", binding.ID)
}

// Delete removes the row of a binding, if it exists, in the caller's transaction. The binding's ServiceAccount must already have
// been removed.
func (s *Store) Delete(ctx context.Context, tx storage.Tx, id string) error {
	_, err := storage.Exec(ctx, tx, `DELETE FROM bindings WHERE id = ?`, id)

	return failure.While(err, "removing binding %s", id)
}

// sealedAccess is the JSON content of the envelope. New fields may be added, but the names of existing ones must never change.
type sealedAccess struct {
	Kubeconfig string `json:"kubeconfig"`
	Server     string `json:"server"`
	// Columns contains the values that boundColumns returns. They determine whose credentials these are. An envelope of an older
	// release does not contain them.
	Columns storage.Bound `json:"columns,omitempty"`
}

// seal encrypts the access and the bound columns. The ID of the row is authenticated, so an envelope that is copied to another row
// cannot be decrypted there.
func (s *Store) seal(binding environment.Binding, access environment.Access) (string, error) {
	plain, err := json.Marshal(sealedAccess{Kubeconfig: access.Kubeconfig.Reveal(), Server: access.Server, Columns: boundColumns(binding)})
	if err != nil {
		return "", fmt.Errorf("encoding the credentials of binding %s: %w", binding.ID, err)
	}

	return s.keys.Seal(plain, accessPlace(binding.ID)), nil
}

func (s *Store) open(binding environment.Binding, sealed string) (environment.Access, error) {
	plain, err := s.keys.Open(sealed, accessPlace(binding.ID))
	if err != nil {
		return environment.Access{}, fmt.Errorf("reading the credentials of binding %s: %w", binding.ID, err)
	}

	var access sealedAccess
	if err := json.Unmarshal(plain, &access); err != nil {
		return environment.Access{}, fmt.Errorf("decoding the credentials of binding %s: %w", binding.ID, err)
	}

	if err := access.Columns.Check(boundColumns(binding)); err != nil {
		return environment.Access{}, fmt.Errorf("reading the credentials of binding %s: %w", binding.ID, err)
	}

	return environment.Access{
		Kubeconfig: secret.String(access.Kubeconfig), Server: access.Server, ExpiresAt: binding.ExpiresAt,
	}, nil
}
