package operations

import (
	"context"
	"embed"
	"fmt"
	"time"

	"github.com/environment-broker/environment-broker/internal/secret"
	"github.com/environment-broker/environment-broker/process"
	"github.com/environment-broker/environment-broker/storage"
)

//go:embed migrations/*.sql
var migrations embed.FS

// Store reads and writes operations, and encrypts their payloads. It implements process.Store. Its methods may be called from any
// goroutine.
type Store struct {
	db     *storage.DB
	keys   *secret.Keyring
	saving storage.Named[savedRow] // the parsed statement saveProgress
	// ended is called for each operation that is canceled while pending, see OnEnded.
	ended func(process.Record)
	// atEnd returns further statements for the end of an operation, see AtEnd.
	atEnd func(process.Record) []storage.Statement
	// keep is the retention period of new operations, see KeepFor.
	keep time.Duration
}

var _ process.Store = (*Store)(nil)

// Open migrates the tables and returns the store. It fails if no key can decrypt the newest payload.
func Open(ctx context.Context, db *storage.DB, keys *secret.Keyring) (*Store, error) {
	if err := db.Migrate(ctx, "operations", migrations, "migrations"); err != nil {
		return nil, err
	}

	saving, err := storage.NewNamed[savedRow](saveProgress)
	if err != nil {
		return nil, fmt.Errorf("preparing to save operations: %w", err)
	}

	store := &Store{
		db: db, keys: keys, saving: saving,
		ended: func(process.Record) {}, atEnd: func(process.Record) []storage.Statement { return nil },
	}

	return store, store.checkKeys(ctx)
}

// OnEnded registers a function that is called for each operation that is canceled while pending, after the commit. No engine
// runs these operations. The function must be registered before the store is used, and must not block.
func (s *Store) OnEnded(ended func(process.Record)) { s.ended = ended }

// AtEnd registers a function whose statements Save executes in the transaction in which an operation ends, regardless of its result.
// The statements can read the resulting state from the table `first (value)`, see storage.DB.ExecCTE. They are not executed for
// operations that end while pending. Several functions can be registered. They must be registered before the store is used.
func (s *Store) AtEnd(statements func(process.Record) []storage.Statement) {
	others := s.atEnd
	s.atEnd = func(record process.Record) []storage.Statement { return append(others(record), statements(record)...) }
}

// KeepFor sets the retention period of operations that are accepted from now on. By default, and if keep is 0, they are kept forever. It
// must be called before the store is used. Package auditlog removes operations after this period, because they are a part of the audit
// log.
func (s *Store) KeepFor(keep time.Duration) { s.keep = keep }

// checkKeys decrypts the newest payload, so that a service with wrong keys fails at startup instead of at every request.
func (s *Store) checkKeys(ctx context.Context) error {
	newest, err := s.List(ctx, Filter{Limit: 1})
	if err != nil || len(newest) == 0 {
		return err
	}

	if _, err := s.Payload(ctx, s.db.Reader(), newest[0].ID); err != nil {
		return fmt.Errorf("APP_DATABASE_SECRET_KEYS lacks a key with which the database is sealed: %w", err)
	}

	return nil
}

// payloadPlace returns the context to which a sealed payload is bound, so that it cannot be decrypted for another operation.
func payloadPlace(operationID string) string { return "operation " + operationID }

// Sealed returns the sealed column, for key rotation.
func Sealed() storage.SealedColumn {
	return storage.SealedColumn{Table: "operations", Column: "payload", Place: payloadPlace}
}
