package orchestrations

import (
	"context"
	"slices"
	"time"

	"github.com/environment-broker/environment-broker/internal/environment"
	"github.com/environment-broker/environment-broker/internal/failure"
	"github.com/environment-broker/environment-broker/storage"
)

// Pending returns all pending targets of an orchestration, sorted by instance.
func (s *Store) Pending(ctx context.Context, tx storage.Tx, id string) ([]environment.Target, error) {
	rows, err := storage.Select[targetRow](ctx, tx, `SELECT `+targetColumns+` FROM orchestration_targets
		WHERE orchestration_id = ? AND state = 'pending' ORDER BY instance_id`, id)

	return targets(rows), failure.While(err, "reading the targets of orchestration %s", id)
}

// LeaveOut marks the pending targets for the given instances as left out, with why as the reason.
func (s *Store) LeaveOut(ctx context.Context, tx storage.Tx, id, why string, instanceIDs []string) error {
	for batch := range slices.Chunk(instanceIDs, insertBatch) {
		if _, err := storage.Exec(ctx, tx, `UPDATE orchestration_targets SET state = 'left out', description = ?
			WHERE orchestration_id = ? AND state = 'pending' AND instance_id IN (?)`, why, id, batch); err != nil {
			return failure.While(err, "leaving out targets of orchestration %s", id)
		}
	}

	return nil
}

// Apply turns a plan that the transaction has locked into a running orchestration. by is the user who applies the plan.
func (s *Store) Apply(ctx context.Context, tx storage.Tx, id, by, description string, now time.Time) error {
	_, err := storage.Exec(ctx, tx, `UPDATE orchestrations SET state = 'in progress', description = ?, applied_by = ?, applied_at = ?, updated_at = ?
		WHERE id = ? AND state = 'planned'`, description, by, storage.At(now), storage.At(now), id)

	return failure.While(err, "applying plan %s", id)
}

// PlannedBefore returns the IDs of the plans that were created at or before the given time.
func (s *Store) PlannedBefore(ctx context.Context, before time.Time) ([]string, error) {
	ids, err := storage.Select[string](ctx, s.db.Reader(), `SELECT id FROM orchestrations WHERE state = 'planned' AND created_at <= ? ORDER BY created_at`,
		storage.At(before))

	return ids, failure.While(err, "finding old plans")
}

// RemoveTargets removes all targets of an orchestration that the transaction has locked.
func (s *Store) RemoveTargets(ctx context.Context, tx storage.Tx, id string) error {
	_, err := storage.Exec(ctx, tx, `DELETE FROM orchestration_targets WHERE orchestration_id = ?`, id)

	return failure.While(err, "removing the targets of orchestration %s", id)
}
