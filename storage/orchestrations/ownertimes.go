package orchestrations

import (
	"context"
	"time"

	"github.com/environment-broker/environment-broker/internal/environment"
	"github.com/environment-broker/environment-broker/internal/failure"
	"github.com/environment-broker/environment-broker/storage"
)

// WaitingFor locks and returns the unfinished orchestrations in which the upgrade of the instance is pending. It does not return plans.
func (s *Store) WaitingFor(ctx context.Context, tx storage.Tx, instanceID string) ([]environment.Orchestration, error) {
	rows, err := storage.Select[row](ctx, tx, `SELECT `+columns+` FROM orchestrations
		WHERE state NOT IN ('canceled', 'succeeded', 'failed', 'planned', 'expired') AND EXISTS (SELECT 1 FROM orchestration_targets
			WHERE orchestration_id = orchestrations.id AND instance_id = ? AND orchestration_targets.state = 'pending')
		ORDER BY id`+s.db.ForUpdate(), instanceID)
	if err != nil {
		return nil, failure.While(err, "finding the orchestrations of instance %s", instanceID)
	}

	waiting := make([]environment.Orchestration, 0, len(rows))

	for _, row := range rows {
		orchestration, err := row.orchestration()
		if err != nil {
			return nil, err
		}

		waiting = append(waiting, orchestration)
	}

	return waiting, nil
}

// ChooseTime sets the earliest start of a pending target. This time takes the place of the target's maintenance window. by is the
// user who chose the time. If the target is no longer pending, the error is storage.ErrNotFound.
func (s *Store) ChooseTime(ctx context.Context, tx storage.Tx, id, instanceID string, at time.Time, by string) error {
	changed, err := storage.Exec(ctx, tx, `UPDATE orchestration_targets SET chosen_at = ?, chosen_by = ?, not_before = ?, not_after = NULL
		WHERE orchestration_id = ? AND instance_id = ? AND state = 'pending'`, storage.At(at), by, storage.At(at), id, instanceID)

	if err == nil && changed == 0 {
		return storage.ErrNotFound
	}

	return failure.While(err, "choosing a time in orchestration %s", id)
}
