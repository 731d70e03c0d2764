package auditlog

import (
	"context"
	"embed"
	"fmt"
	"time"

	"github.com/sirupsen/logrus"
	"k8s.io/utils/clock"

	"github.com/environment-broker/environment-broker/internal/audit/chain"
	"github.com/environment-broker/environment-broker/internal/failure"
	"github.com/environment-broker/environment-broker/storage"
)

// There are separate migrations for each database, because the syntax of triggers differs.
//
//go:embed migrations
var migrations embed.FS

// Store adds, lists, archives, erases and removes entries. Its methods may be called from any goroutine.
type Store struct {
	db *storage.DB
	// keep is the retention period for new entries. If it is 0, new entries are kept forever.
	keep time.Duration
	// archive is nil if entries are removed without an archive.
	archive *Archive
}

// Open migrates the table and returns the store. The tables of package operations must exist, because the entries of accepted
// operations are part of the audit log. keep is the retention period of entries that are added from now on. If it is 0, they are
// kept forever.
func Open(ctx context.Context, db *storage.DB, keep time.Duration) (*Store, error) {
	if err := db.Migrate(ctx, "audit", migrations, "migrations/"+db.Driver()); err != nil {
		return nil, err
	}

	return &Store{db: db, keep: keep}, nil
}

// Insert adds an entry in the caller's transaction. It shortens the entry to the limits that bounded enforces, and stores the end
// of the entry's retention period. Until then, the database rejects the removal of the entry. Entries about erasures are kept
// forever, because the erased entries refer to them.
func (s *Store) Insert(ctx context.Context, tx storage.Tx, entry Entry) error {
	entry = entry.bounded()

	encoded, err := entry.Encode()
	if err != nil {
		return err
	}

	var until storage.Time
	if s.keep > 0 && entry.Action != ActionErase {
		until = storage.At(entry.At.Add(s.keep))
	}

	if _, err := storage.Exec(ctx, tx, `INSERT INTO audit (id, at, action, instance_id, operation_id, ordered_by, status, entry, keep_until, account)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
		entry.ID, storage.At(entry.At), entry.Action, entry.InstanceID, entry.OperationID, entry.By.Name(), entry.Status, encoded, until,
		entry.Account,
	); err != nil {
		return fmt.Errorf("adding an audit log entry: %w", err)
	}

	return nil
}

const (
	// retentionBatch is the maximum number of entries that are removed in one transaction. Removing an entry changes 12 database
	// blocks, half as many as removing an operation, so no removal changes more than 1,500 blocks in one statement.
	retentionBatch = 100
	// archivedAhead is the minimum number of due entries whose records are archived before a batch is removed. Without it, each small
	// batch would produce a small archive file.
	archivedAhead = 500
)

// Retention returns a storage.Retention that removes entries whose retention period is over.
func (s *Store) Retention(clock clock.WithTicker, log logrus.FieldLogger) storage.Retention {
	return storage.Retention{
		Name: "audit retention", Rows: "audit log entries", Batch: retentionBatch, Clock: clock, Log: log, Remove: s.Remove,
	}
}

// Remove removes at most limit entries whose retention period is over, and returns their number. Entries of accepted operations
// are part of the operations' rows, which RemoveOperations removes. After a call of ArchiveTo, only the replica that adds records
// to the chain archives and removes entries, and it removes only entries whose records were archived.
func (s *Store) Remove(ctx context.Context, now time.Time, limit int) (int, error) {
	archived, args := "", []any{storage.At(now)}

	if s.archive != nil {
		if !s.archive.Chainer.holdsLease() {
			return 0, nil
		}

		last, err := s.archiveDue(ctx, chain.SourceEntry, `SELECT id FROM audit WHERE keep_until < ? ORDER BY keep_until `+
			storage.Page(max(limit, archivedAhead), 0), now)
		if err != nil {
			return 0, err
		}

		archived = ` AND EXISTS (SELECT 1 FROM audit_chain
			WHERE audit_chain.id = audit.id AND audit_chain.source = '` + chain.SourceEntry + `' AND audit_chain.number <= ?)`

		args = append(args, last)
	}

	removed, err := storage.Exec(ctx, s.db.Writer(), `WITH chosen AS MATERIALIZED (
			SELECT id FROM audit WHERE keep_until < ?`+archived+` ORDER BY keep_until `+storage.Page(limit, 0)+s.db.SkipLocked()+`
		)
		DELETE FROM audit WHERE id IN (SELECT id FROM chosen)`, args...)

	return int(removed), failure.While(err, "removing old audit log entries")
}
