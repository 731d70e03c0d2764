package operations

import (
	"context"
	"embed"
	"fmt"
	"io/fs"

	"github.com/environment-broker/environment-broker/internal/secret"
	"github.com/environment-broker/environment-broker/process"
	"github.com/environment-broker/environment-broker/storage"
)

//go:embed migrations/*.sql
var migrations embed.FS

// Store keeps operations. It implements process.Store.
type Store struct {
	db   *storage.DB
	keys *secret.Keyring
	// saving is saveProgress.
	saving storage.Named[savedRow]
	// ended is told of operations that are canceled before their turn.
	ended func(process.Record)
}

var _ process.Store = (*Store)(nil)

// Open brings the tables up to date and returns the store.
func Open(ctx context.Context, db *storage.DB, keys *secret.Keyring) (*Store, error) {
	files, err := fs.Sub(migrations, "migrations")
	if err != nil {
		return nil, fmt.Errorf("reading embedded migrations: %w", err)
	}

	if err := db.Migrate(ctx, "operations", files); err != nil {
		return nil, err
	}

	saving, err := storage.NewNamed[savedRow](saveProgress)
	if err != nil {
		return nil, fmt.Errorf("preparing to save operations: %w", err)
	}

	store := &Store{db: db, keys: keys, saving: saving, ended: func(process.Record) {}}

	return store, store.checkKeys(ctx)
}

// Tell has ended called, after the commit, for each operation that ends because it is canceled before its turn: no engine carries it. Tell is
// called before the store is in use. What it names must not block.
func (s *Store) Tell(ended func(process.Record)) { s.ended = ended }

// checkKeys opens the newest payload, so that wrong keys stop the start instead of every request.
func (s *Store) checkKeys(ctx context.Context) error {
	newest, err := s.List(ctx, Filter{Limit: 1})
	if err != nil || len(newest) == 0 {
		return err
	}

	if _, err := s.Payload(ctx, s.db.Reader(), newest[0].ID); err != nil {
		return fmt.Errorf("the database is sealed with other keys than those in APP_DATABASE_SECRET_KEYS, add the one that is missing: %w", err)
	}

	return nil
}

// payloadPlace binds a sealed payload to its operation.
func payloadPlace(operationID string) string { return "operation " + operationID }

// Sealed is the column that is sealed.
func Sealed() storage.SealedColumn {
	return storage.SealedColumn{Table: "operations", Column: "payload", Place: payloadPlace}
}
