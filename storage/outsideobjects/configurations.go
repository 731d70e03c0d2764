package outsideobjects

import (
	"context"
	"errors"
	"time"

	"github.com/environment-broker/environment-broker/internal/environment"
	"github.com/environment-broker/environment-broker/internal/failure"
	"github.com/environment-broker/environment-broker/internal/secret"
	"github.com/environment-broker/environment-broker/storage"
)

// place returns the additional data with which a configuration is sealed, so that it cannot be decrypted as the
// configuration of another instance.
func place(instanceID string) string { return "configuration of instance " + instanceID }

// Sealed returns the column with the sealed configurations, for key rotation.
func Sealed() storage.SealedColumn {
	return storage.SealedColumn{Table: "outside_configurations", Column: "configuration", Place: place}
}

// Configuration returns the configuration that Set last stored for the object. The caller must have read the object's current
// record. The result is empty if no configuration is stored, or if a replica of an earlier release, which does not store
// configurations, has changed the object since then.
func (s *Store) Configuration(ctx context.Context, object environment.OutsideObject) (secret.String, error) {
	sealed, err := storage.Get[string](ctx, s.db.Reader(), `SELECT configuration FROM outside_configurations WHERE id = ? AND issued_at = ?`,
		object.InstanceID, storage.At(object.Credential.IssuedAt))
	if errors.Is(err, storage.ErrNotFound) {
		return "", nil
	}

	var plain []byte
	if err == nil {
		plain, err = s.keys.Open(sealed, place(object.InstanceID))
	}

	return secret.String(plain), failure.While(err, "reading the configuration that instance %s has in another system", object.InstanceID)
}

// configure returns the statement that stores the configuration of the object, for operations.Fenced.
func (s *Store) configure(object environment.OutsideObject) storage.Statement {
	return storage.Statement{
		Text: `INSERT INTO outside_configurations (id, configuration, issued_at) SELECT ?, ?, ? FROM first WHERE true
			ON CONFLICT (id) DO UPDATE SET configuration = excluded.configuration, issued_at = excluded.issued_at`,
		Args: []any{
			object.InstanceID, s.keys.Seal([]byte(object.Configuration.Reveal()), place(object.InstanceID)), storage.At(object.Credential.IssuedAt),
		},
	}
}

// keepConfiguration records, after a renewal of the object's credential, that the stored configuration is still current.
func keepConfiguration(ctx context.Context, tx storage.Tx, object environment.OutsideObject, issuedAt time.Time) error {
	if !hasConfiguration(object) || issuedAt.IsZero() {
		return nil
	}

	_, err := storage.Exec(ctx, tx, `UPDATE outside_configurations SET issued_at = ? WHERE id = ? AND issued_at = ?`,
		storage.At(issuedAt), object.InstanceID, storage.At(object.Credential.IssuedAt))

	return err
}

// removeConfiguration removes the configuration of an instance, in the caller's transaction.
func removeConfiguration(ctx context.Context, tx storage.Tx, instanceID string) error {
	_, err := storage.Exec(ctx, tx, `DELETE FROM outside_configurations WHERE id = ?`, instanceID)

	return err
}

// hasConfiguration reports whether objects of this kind have a configuration. Only clusters in the Reconciler have one.
func hasConfiguration(object environment.OutsideObject) bool {
	return object.Kind == environment.KindCluster
}
