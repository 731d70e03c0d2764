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
	// ended is the function that OnEnded has registered.
	ended func(process.Record)
	// atEnd returns the statements of the functions that AtEnd has registered.
	atEnd func(process.Record) []storage.Statement
	// keep is the retention period for new operations, see KeepFor.
	keep time.Duration
}

var _ process.Store = (*Store)(nil)

// Open migrates the tables and returns the store. It fails if the newest payload cannot be decrypted with any of the keys.
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

// OnEnded registers a function that is called, after the commit, for each operation that is canceled while it is pending. These
// operations end without being run by an engine. The function must be registered before the store is used, and must not block.
func (s *Store) OnEnded(ended func(process.Record)) { s.ended = ended }

// AtEnd registers a function that returns additional statements for the end of an operation. Save executes them in the transaction
// in which the operation ends, regardless of the result. The statements can read the final state from the table `first (value)`,
// see storage.DB.ExecCTE. They are not executed for operations that end while they are pending. Several functions can be
// registered, all before the store is used.
func (s *Store) AtEnd(statements func(process.Record) []storage.Statement) {
	others := s.atEnd
	s.atEnd = func(record process.Record) []storage.Statement { return append(others(record), statements(record)...) }
}

// KeepFor sets the retention period of operations that are accepted from now on. If keep is 0, or if KeepFor is not called,
// operations are kept forever. Call it before the store is used. Package auditlog removes the operations after this period,
// because they are a part of the audit log.
func (s *Store) KeepFor(keep time.Duration) { s.keep = keep }

// checkKeys decrypts the newest payload, so that a service with wrong keys fails at startup instead of at every request.
func (s *Store) checkKeys(ctx context.Context) error {
	newest, err := s.List(ctx, Filter{Limit: 1})
	if err != nil || len(newest) == 0 {
		return err
	}

	if _, err := s.Payload(ctx, s.db.Reader(), newest[0].ID); err != nil {
		return fmt.Errorf("APP_DATABASE_SECRET_KEYS lacks a key with which data in the database was sealed: %w", err)
	}

	return nil
}

// payloadPlace returns the additional data with which a payload is sealed, so that it cannot be decrypted as the payload of
// another operation.
func payloadPlace(operationID string) string { return "operation " + operationID }

// Sealed returns the column with the sealed payloads, for key rotation.
func Sealed() storage.SealedColumn {
	return storage.SealedColumn{Table: "operations", Column: "payload", Place: payloadPlace}
}
