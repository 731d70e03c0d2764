package runtimes

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/environment-broker/environment-broker/internal/failure"
	"github.com/environment-broker/environment-broker/storage"
)

// recordPlace returns the additional data with which a record is sealed, so that it cannot be opened as the record of another
// runtime.
func recordPlace(id string) string { return "record of runtime " + id }

// Record returns a runtime's row in a form that can be stored outside of the database: as JSON, sealed with the first key. The
// database does not contain records, so key rotation does not re-encrypt them.
func (s *Store) Record(runtime Runtime) (string, error) {
	plain, err := json.Marshal(runtime)
	if err != nil {
		return "", fmt.Errorf("encoding the record of runtime %s: %w", runtime.ID, err)
	}

	return s.keys.Seal(plain, recordPlace(runtime.ID)), nil
}

// OpenRecord returns the runtime from a record. The Provider and Region of the result are empty. OpenRecord fails if the record
// was changed, if it belongs to another runtime, or if the key with which it was sealed is not configured.
func (s *Store) OpenRecord(id, record string) (Runtime, error) {
	plain, err := s.keys.Open(record, recordPlace(id))
	if err != nil {
		return Runtime{}, fmt.Errorf("reading the record of runtime %s: %w", id, err)
	}

	var runtime Runtime

	err = json.Unmarshal(plain, &runtime)

	return runtime, failure.While(err, "decoding the record of runtime %s", id)
}

// Tenants returns the original IDs of at most limit accounts that have runtimes, including deleted ones. The IDs are sorted byte by
// byte, regardless of the locale of the database, and greater than after. The caller can thus merge them with other sorted IDs.
func (s *Store) Tenants(ctx context.Context, after string, limit int) ([]string, error) {
	tenants, err := storage.Select[string](ctx, s.db.Reader(), `SELECT account FROM (
			SELECT DISTINCT CASE WHEN original_tenant = '' THEN tenant ELSE original_tenant END AS account FROM runtimes
		) AS accounts WHERE account`+s.db.Bytewise()+` > ? ORDER BY account`+s.db.Bytewise()+` `+storage.Page(limit, 0), after)

	return tenants, failure.While(err, "listing the tenants of runtimes")
}

// UnsettledLabels returns the given labels for which the tenant has a registration that SettleRegistration has not
// removed. registration.Caretaker handles these registrations.
func (s *Store) UnsettledLabels(ctx context.Context, tenant string, labels []string) ([]string, error) {
	if len(labels) == 0 {
		return nil, nil
	}

	unsettled, err := storage.Select[string](ctx, s.db.Reader(),
		`SELECT label FROM registrations WHERE tenant = ? AND label IN (?)`, tenant, labels)

	return unsettled, failure.While(err, "reading unsettled registrations")
}
