package orchestrations

import (
	"context"
	"slices"
	"time"

	"github.com/environment-broker/environment-broker/internal/environment"
	"github.com/environment-broker/environment-broker/internal/failure"
	"github.com/environment-broker/environment-broker/storage"
)

// EndedWindows returns the distinct maintenance windows of the pending targets for which the current occurrence of the window has
// ended. The result includes an empty string if the NotAfter of a pending target without a window has passed.
func (s *Store) EndedWindows(ctx context.Context, tx storage.Tx, id string, now time.Time) ([]string, error) {
	windows, err := storage.Select[string](ctx, tx, `SELECT DISTINCT maintenance_window FROM orchestration_targets
		WHERE orchestration_id = ? AND state = 'pending' AND not_after <= ? ORDER BY maintenance_window`, id, storage.At(now))

	return windows, failure.While(err, "finding ended windows of orchestration %s", id)
}

// MoveToWindow moves each pending target that has the given window, and for which the current occurrence of the window has ended,
// to the next occurrence. A zero notAfter means that this occurrence has no end.
func (s *Store) MoveToWindow(ctx context.Context, tx storage.Tx, id, window string, notBefore, notAfter, now time.Time) error {
	_, err := storage.Exec(ctx, tx, `UPDATE orchestration_targets SET not_before = ?, not_after = ?
		WHERE orchestration_id = ? AND state = 'pending' AND not_after <= ? AND maintenance_window = ?`,
		storage.At(notBefore), storage.At(notAfter), id, storage.At(now), window)

	return failure.While(err, "moving targets of orchestration %s", id)
}

// CancelLate cancels the pending targets that cannot start before the deadline.
func (s *Store) CancelLate(ctx context.Context, tx storage.Tx, id, why string, deadline time.Time) error {
	_, err := storage.Exec(ctx, tx, `UPDATE orchestration_targets SET state = 'canceled', description = ?
		WHERE orchestration_id = ? AND state = 'pending' AND not_before >= ?`, why, id, storage.At(deadline))

	return failure.While(err, "canceling the late targets of orchestration %s", id)
}

// SetWindows copies the maintenance window of the target like, and the next occurrence of this window, to the pending targets for
// the given instances.
func (s *Store) SetWindows(ctx context.Context, tx storage.Tx, like environment.Target, instanceIDs []string) error {
	for batch := range slices.Chunk(instanceIDs, insertBatch) {
		if _, err := storage.Exec(ctx, tx, `UPDATE orchestration_targets SET maintenance_window = ?, not_before = ?, not_after = ?
			WHERE orchestration_id = ? AND state = 'pending' AND instance_id IN (?)`,
			like.Window, storage.At(like.NotBefore), storage.At(like.NotAfter), like.OrchestrationID, batch); err != nil {
			return failure.While(err, "changing the windows of orchestration %s", like.OrchestrationID)
		}
	}

	return nil
}

// Unstarted returns the targets in progress whose upgrades did not start in time, that is, whose upgrades have failed with the
// given reason.
func (s *Store) Unstarted(ctx context.Context, tx storage.Tx, id, reason string) ([]environment.Target, error) {
	rows, err := storage.Select[targetRow](ctx, tx, `SELECT `+targetColumns+` FROM orchestration_targets
		WHERE orchestration_id = ? AND state = 'in progress' AND EXISTS (
			SELECT 1 FROM operations WHERE operations.id = operation_id AND operations.state = 'failed' AND operations.problem_reason = ?)
		ORDER BY instance_id`, id, reason)

	return targets(rows), failure.While(err, "finding targets that did not start in orchestration %s", id)
}

// Repeat makes a target in progress pending again. operationID is the ID of its next upgrade.
func (s *Store) Repeat(ctx context.Context, tx storage.Tx, target environment.Target, operationID string) error {
	_, err := storage.Exec(ctx, tx, `UPDATE orchestration_targets SET state = 'pending', description = ?, operation_id = ?
		WHERE orchestration_id = ? AND instance_id = ? AND state = 'in progress'`,
		target.Description, operationID, target.OrchestrationID, target.InstanceID)

	return failure.While(err, "repeating a target of orchestration %s", target.OrchestrationID)
}
