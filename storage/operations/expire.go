package operations

import (
	"context"
	"fmt"

	"github.com/environment-broker/environment-broker/process"
	"github.com/environment-broker/environment-broker/storage"
)

// expirePending chooses in the order of the index of what is pending: so it reads nothing else, whatever the table holds. It passes by what
// another replica claims or expires. As in claimPending, the choice is made once.
const expirePending = `WITH chosen AS MATERIALIZED (
	SELECT id FROM operations WHERE state = 'pending' AND created_at < ? ORDER BY kind, turn, created_at LIMIT ?%s
)
UPDATE operations SET
	state = 'failed', problem_message = ?, problem_reason = ?, problem_component = ?, updated_at = ?, state_changed_at = ?, finished_at = ?
WHERE id IN (SELECT id FROM chosen) RETURNING ` + status

// ExpirePending implements process.Store.
func (s *Store) ExpirePending(ctx context.Context, expiry process.Expiry) ([]process.Record, error) {
	var expired []row

	now, problem := storage.At(expiry.Now), expiry.Problem

	err := s.db.InTx(ctx, func(tx storage.Tx) error {
		var err error

		expired, err = storage.Select[row](ctx, tx, fmt.Sprintf(expirePending, s.db.SkipLocked()),
			storage.At(expiry.Before), expiry.Limit, problem.Message, problem.Reason, problem.Component, now, now, now)
		if err != nil {
			return err
		}

		for _, ended := range expired {
			if err := appendTimeline(ctx, tx, ended.ID, process.Entry{
				Began: expiry.Now, End: expiry.Now, Outcome: process.OperationFailed, Message: problem.Message,
			}); err != nil {
				return err
			}
		}

		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("expiring pending operations: %w", err)
	}

	return records(expired), nil
}
