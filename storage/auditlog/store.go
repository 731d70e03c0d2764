package auditlog

import (
	"context"
	"embed"
	"fmt"
	"io/fs"
	"time"

	"github.com/environment-broker/environment-broker/storage"
)

// The triggers that refuse changes are not written alike for both databases.
//
//go:embed migrations
var migrations embed.FS

// Store keeps entries.
type Store struct {
	db *storage.DB
	// keep is for how long an entry is kept, or 0 for ever.
	keep time.Duration
}

// Open brings the table up to date and returns the store. The tables of the engine have to be there: their operations are part of the
// trail.
func Open(ctx context.Context, db *storage.DB, keep time.Duration) (*Store, error) {
	files, err := fs.Sub(migrations, "migrations/"+db.Driver())
	if err != nil {
		return nil, fmt.Errorf("reading embedded migrations: %w", err)
	}

	if err := db.Migrate(ctx, "audit", files); err != nil {
		return nil, err
	}

	return &Store{db: db, keep: keep}, nil
}

// Insert adds an entry inside the caller's transaction. For how long it is kept is decided now: the database refuses to remove it before.
func (s *Store) Insert(ctx context.Context, tx storage.Tx, entry Entry) error {
	encoded, err := entry.Encode()
	if err != nil {
		return err
	}

	var until storage.Time
	if s.keep > 0 {
		until = storage.At(entry.At.Add(s.keep))
	}

	if _, err := storage.Exec(ctx, tx, `INSERT INTO audit (id, at, action, instance_id, operation_id, ordered_by, status, entry, keep_until)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)`,
		entry.ID, storage.At(entry.At), entry.Action, entry.InstanceID, entry.OperationID, entry.By.Name(), entry.Status, encoded, until,
	); err != nil {
		return fmt.Errorf("adding an entry: %w", err)
	}

	return nil
}

// Remove removes entries that are not to be kept any more, no more than the limit, and returns how many there were. Those of operations
// stay as long as these.
func (s *Store) Remove(ctx context.Context, now time.Time, limit int) (int, error) {
	removed, err := storage.Exec(ctx, s.db.Writer(), `WITH chosen AS MATERIALIZED (
			SELECT id FROM audit WHERE keep_until < ? ORDER BY keep_until `+storage.Page(limit, 0)+s.db.SkipLocked()+`
		)
		DELETE FROM audit WHERE id IN (SELECT id FROM chosen)`, storage.At(now))
	if err != nil {
		return 0, fmt.Errorf("removing old entries: %w", err)
	}

	return int(removed), nil
}
