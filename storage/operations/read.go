package operations

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/environment-broker/environment-broker/process"
	"github.com/environment-broker/environment-broker/storage"
)

// Reader returns a Tx for reads outside of a transaction. Callers pass it, or the Tx of their transaction, to the methods in this
// file.
func (s *Store) Reader() storage.Tx { return s.db.Reader() }

// Get returns an operation without its payload, or storage.ErrNotFound.
func (s *Store) Get(ctx context.Context, tx storage.Tx, id string) (process.Record, error) {
	row, err := storage.Get[row](ctx, tx, `SELECT `+forecast+` FROM operations WHERE id = ?`, id)
	if err != nil {
		return process.Record{}, fmt.Errorf("reading operation %s: %w", id, err)
	}

	return row.record(), nil
}

// Polled returns those fields of an operation that platforms poll. All other fields are zero. If the operation does not exist, it
// returns storage.ErrNotFound. Platforms poll often, so the query reads only a few columns of a single row, by its key.
func (s *Store) Polled(ctx context.Context, tx storage.Tx, id string) (process.Record, error) {
	row, err := storage.Get[row](ctx, tx, `SELECT id, instance_id, kind, state, description, problem_message, progress, stage, step,
		created_at, started_at FROM operations WHERE id = ?`, id)
	if err != nil {
		return process.Record{}, fmt.Errorf("reading operation %s: %w", id, err)
	}

	return row.record(), nil
}

// Payload returns the decrypted data of an operation. It returns storage.ErrNotFound if the operation does not exist, and
// ErrSealed if no configured key can decrypt the data.
func (s *Store) Payload(ctx context.Context, tx storage.Tx, id string) (json.RawMessage, error) {
	sealed, err := storage.Get[string](ctx, tx, `SELECT payload FROM operations WHERE id = ?`, id)
	if err != nil {
		return nil, fmt.Errorf("reading the data of operation %s: %w", id, err)
	}

	return s.open(id, sealed)
}

// OfInstance returns all operations of an instance without their payloads, newest first.
func (s *Store) OfInstance(ctx context.Context, tx storage.Tx, instanceID string) ([]process.Record, error) {
	rows, err := storage.Select[row](ctx, tx,
		`SELECT `+status+` FROM operations WHERE instance_id = ? ORDER BY position DESC`, instanceID)
	if err != nil {
		return nil, fmt.Errorf("reading the operations of instance %s: %w", instanceID, err)
	}

	return records(rows), nil
}

// Latest returns the instance's newest operation of one of the given kinds, or storage.ErrNotFound. At least one kind is
// required.
func (s *Store) Latest(ctx context.Context, tx storage.Tx, instanceID string, kinds ...string) (process.Record, error) {
	row, err := storage.Get[row](ctx, tx, `SELECT `+forecast+` FROM operations
		WHERE instance_id = ? AND kind IN (?) ORDER BY position DESC LIMIT 1`, instanceID, kinds)
	if err != nil {
		return process.Record{}, fmt.Errorf("reading the last operation of instance %s: %w", instanceID, err)
	}

	return row.record(), nil
}

// Change is an entry of the change feed: an operation, and the time at which its state, problem or progress last changed.
type Change struct {
	ID         string       `db:"id"`
	Kind       string       `db:"kind"`
	InstanceID string       `db:"instance_id"`
	State      string       `db:"state"`
	At         storage.Time `db:"state_changed_at"`
}

// ChangedSince returns at most limit operations that changed at or after the given time, oldest change first. A transaction that
// commits later may still add a change with an earlier time, so callers must read overlapping ranges.
func (s *Store) ChangedSince(ctx context.Context, since time.Time, limit int) ([]Change, error) {
	changes, err := storage.Select[Change](ctx, s.db.Reader(), `SELECT id, kind, instance_id, state, state_changed_at FROM operations
		WHERE state_changed_at >= ? ORDER BY state_changed_at, id LIMIT ?`, storage.At(since), limit)
	if err != nil {
		return nil, fmt.Errorf("reading changed operations: %w", err)
	}

	return changes, nil
}

// QueueDepth is the number of operations of a kind in an unfinished state. Oldest is when the oldest of these operations was
// accepted. Leased is the number of operations that have a lease. Expired is the number of expired leases.
type QueueDepth struct {
	Kind   string        `db:"kind"`
	State  process.State `db:"state"`
	Count  int           `db:"count"`
	Oldest storage.Time  `db:"oldest"`

	Leased  int `db:"leased"`
	Expired int `db:"expired"`
}

// queueDepths counts the operations in two partial indexes: the one on pending operations and the one on active operations.
// Pending operations have no leases.
const queueDepths = `SELECT kind, state, COUNT(*) AS count, MIN(created_at) AS oldest, 0 AS leased, 0 AS expired FROM operations
	WHERE state = 'pending' GROUP BY kind, state
UNION ALL
SELECT kind, state, COUNT(*) AS count, MIN(created_at) AS oldest, COUNT(lease_until) AS leased,
	COUNT(CASE WHEN lease_until < ? THEN 1 END) AS expired FROM operations
	WHERE state IN ('in progress', 'canceling') GROUP BY kind, state`

// QueueDepths counts the unfinished operations and their leases at the given time, for metrics. Kinds and states without operations are
// absent.
func (s *Store) QueueDepths(ctx context.Context, now time.Time) ([]QueueDepth, error) {
	found, err := storage.Select[QueueDepth](ctx, s.db.Reader(), queueDepths, storage.At(now))
	if err != nil {
		return nil, fmt.Errorf("counting unfinished operations: %w", err)
	}

	return found, nil
}
