package auditlog

import (
	"context"
	"math"
	"slices"
	"time"

	"github.com/sirupsen/logrus"
	"k8s.io/utils/clock"

	"github.com/environment-broker/environment-broker/internal/audit/chain"
	"github.com/environment-broker/environment-broker/internal/failure"
	"github.com/environment-broker/environment-broker/storage"
	"github.com/environment-broker/environment-broker/storage/operations"
)

const (
	// operationsBatch is the maximum number of operations that are examined in one transaction.
	operationsBatch = 50
	// examineAgain is the time after which an operation that is still needed is examined again.
	examineAgain = 7 * 24 * time.Hour
)

// dueOperations selects the operations that are due for examination, starting with the one that has been due longest. It selects
// only operations whose timelines have been removed. The argument of the query is the current time.
const dueOperations = `FROM operations WHERE timeline_removed_at IS NOT NULL AND examine_at IS NOT NULL AND examine_at < ? ORDER BY examine_at `

// OperationRetention returns a storage.Retention that removes operations whose retention period is over, unless the service still
// needs them according to removal.
func (s *Store) OperationRetention(removal operations.Removal, clock clock.WithTicker, log logrus.FieldLogger) storage.Retention {
	return storage.Retention{
		Name: "operation retention", Rows: "operations", Batch: operationsBatch, Clock: clock, Log: log,
		Examine: func(ctx context.Context, now time.Time, limit int) (int, int, error) {
			return s.RemoveOperations(ctx, removal, now, limit)
		},
	}
}

// RemoveOperations examines at most limit operations whose retention period is over, and removes those that the service does not need.
// The others are examined again after examineAgain. It returns how many operations were examined and how many were removed. Concurrent
// replicas skip each other's rows.
//
// An operation is removed only if the chain contains its record with the same retention period. After a call of ArchiveTo,
// RemoveOperations works only on the replica that adds records to the chain, and archives the records before it removes
// operations.
func (s *Store) RemoveOperations(ctx context.Context, removal operations.Removal, now time.Time, limit int) (examined, removed int, err error) {
	last := int64(math.MaxInt64)

	if s.archive != nil {
		if !s.archive.Chainer.holdsLease() {
			return 0, 0, nil
		}

		last, err = s.archiveDue(ctx, chain.SourceOperation, `SELECT id `+dueOperations+storage.Page(limit, 0), now)
		if err != nil {
			return 0, 0, err
		}
	}

	err = s.db.InTx(ctx, func(tx storage.Tx) error {
		sweep := operationSweep{store: s, removal: removal, tx: tx, now: now, archived: last}
		examined, removed, err = sweep.run(ctx, limit)

		return err
	})

	return examined, removed, failure.While(err, "removing old operations")
}

// operationSweep contains the data of a transaction that removes operations.
type operationSweep struct {
	store    *Store
	removal  operations.Removal
	tx       storage.Tx
	now      time.Time
	archived int64
}

// claimed identifies an operation that the transaction has locked.
type claimed struct {
	ID  string `db:"id"`
	Key string `db:"instance_id"`
}

func (s operationSweep) run(ctx context.Context, limit int) (examined, removed int, err error) {
	found, err := storage.Select[claimed](ctx, s.tx, `SELECT id, instance_id `+dueOperations+storage.Page(limit, 0)+s.store.db.SkipLocked(),
		storage.At(s.now))
	if err != nil || len(found) == 0 {
		return 0, 0, err
	}

	var ids, keys []string
	for _, operation := range found {
		ids, keys = append(ids, operation.ID), append(keys, operation.Key)
	}

	removable, emptied, err := s.removable(ctx, ids, slices.Compact(slices.Sorted(slices.Values(keys))))
	if err != nil {
		return 0, 0, err
	}

	if err := s.remove(ctx, removable, emptied); err != nil {
		return 0, 0, err
	}

	_, err = storage.Exec(ctx, s.tx, `UPDATE operations SET examine_at = ? WHERE id IN (?)`, storage.At(s.now.Add(examineAgain)), padded(ids))

	return len(found), len(removable), err
}

// removable returns the given operation IDs that may be removed, and the keys that have no operations left afterwards.
// Only the operations in ids are removed, because the transaction has locked only these. Locking the other operations of the same
// keys could make two replicas wait for each other.
func (s operationSweep) removable(ctx context.Context, ids, keys []string) (removable, emptied []string, err error) {
	subjects, err := s.removal.Subjects(ctx, s.tx, keys)
	if err != nil {
		return nil, nil, err
	}

	histories, err := s.histories(ctx, keys)
	if err != nil {
		return nil, nil, err
	}

	choose := func(allowed func(id string) bool) {
		removable, emptied = nil, nil

		for _, key := range keys {
			history := slices.Clone(histories[key])
			for i := range history {
				history[i].Due = history[i].Due && allowed(history[i].ID)
			}

			chosen := s.removal.Removable(subjects[key], history)
			for _, operation := range chosen {
				removable = append(removable, operation.ID)
			}

			if len(chosen) == len(history) {
				emptied = append(emptied, key)
			}
		}
	}

	choose(func(id string) bool { return slices.Contains(ids, id) })

	if len(removable) == 0 {
		return nil, nil, nil
	}

	blocked, err := s.blocked(ctx, removable)
	if err != nil {
		return nil, nil, err
	}

	choose(func(id string) bool { return slices.Contains(ids, id) && !slices.Contains(blocked, id) })

	return removable, emptied, nil
}

// histories returns the operations of each key, oldest first.
func (s operationSweep) histories(ctx context.Context, keys []string) (map[string][]operations.Aged, error) {
	rows, err := storage.Select[operations.Aged](ctx, s.tx, `SELECT id, instance_id, kind, state,
			finished_at IS NOT NULL AND timeline_removed_at IS NOT NULL AND keep_until IS NOT NULL AND keep_until < ? AS due
		FROM operations WHERE instance_id IN (?) ORDER BY instance_id, position`, storage.At(s.now), padded(keys))

	histories := map[string][]operations.Aged{}
	for _, row := range rows {
		histories[row.Key] = append(histories[row.Key], row)
	}

	return histories, err
}

// blocked returns the IDs of the operations that must stay, because other rows refer to them, their record is missing or not
// archived, or an erasure needs their account. An erasure determines the account of an entry about an instance from the newest
// operation before the entry or, if there is none, from the first operation, see erasable.
func (s operationSweep) blocked(ctx context.Context, ids []string) ([]string, error) {
	blocked, err := s.removal.Named(ctx, s.tx, ids)
	if err != nil {
		return nil, err
	}

	others, err := storage.Select[string](ctx, s.tx, `SELECT o.id FROM operations AS o WHERE o.id IN (?) AND (
		NOT EXISTS (SELECT 1 FROM audit_chain AS c WHERE c.id = o.id AND c.source = '`+chain.SourceOperation+`'
			AND c.keep_until = o.keep_until AND c.number <= ?)
		OR EXISTS (SELECT 1 FROM audit AS a WHERE a.instance_id = o.instance_id AND a.at >= o.created_at AND a.account = '' AND a.erased_by = ''
			AND NOT EXISTS (SELECT 1 FROM operations AS n
				WHERE n.instance_id = o.instance_id AND n.position > o.position AND n.created_at <= a.at))
		OR EXISTS (SELECT 1 FROM audit AS a WHERE a.instance_id = o.instance_id AND a.at < o.created_at AND a.account = '' AND a.erased_by = '')
			AND NOT EXISTS (SELECT 1 FROM operations AS n WHERE n.instance_id = o.instance_id AND n.position < o.position))`, padded(ids), s.archived)

	return append(blocked, others...), err
}

// remove deletes the operations with the given IDs, and then calls Removal.Removed.
func (s operationSweep) remove(ctx context.Context, ids, emptied []string) error {
	if len(ids) == 0 {
		return nil
	}

	if _, err := storage.Exec(ctx, s.tx, `DELETE FROM operations WHERE id IN (?)`, padded(ids)); err != nil {
		return err
	}

	if s.removal.Removed == nil {
		return nil
	}

	return s.removal.Removed(ctx, s.tx, ids, emptied)
}
