package orchestrations

import (
	"context"
	"errors"

	"github.com/environment-broker/environment-broker/internal/environment"
	"github.com/environment-broker/environment-broker/internal/failure"
	"github.com/environment-broker/environment-broker/storage"
)

// Upgraded returns the targets of an orchestration whose upgrades have succeeded or failed, sorted by instance. If the orchestration has
// not ended, the list may be incomplete.
func (s *Store) Upgraded(ctx context.Context, tx storage.Tx, id string) ([]environment.Target, error) {
	rows, err := storage.Select[targetRow](ctx, tx, `SELECT `+targetColumns+` FROM orchestration_targets
		WHERE orchestration_id = ? AND state IN ('succeeded', 'failed') ORDER BY instance_id`, id)

	return targets(rows), failure.While(err, "reading the targets of orchestration %s", id)
}

// UpgradeOf returns the ID of the upgrade of an instance in an orchestration. If there is none, it returns storage.ErrNotFound.
func (s *Store) UpgradeOf(ctx context.Context, tx storage.Tx, id, instanceID string) (string, error) {
	operationID, err := storage.Get[string](ctx, tx, `SELECT operation_id FROM orchestration_targets WHERE orchestration_id = ? AND instance_id = ?`,
		id, instanceID)

	return operationID, failure.While(err, "reading a target of orchestration %s", id)
}

// UnfinishedUndo returns the ID of an unfinished orchestration that undoes the given one, or an empty string if there is none. It
// ignores plans.
func (s *Store) UnfinishedUndo(ctx context.Context, tx storage.Tx, undoes string) (string, error) {
	id, err := storage.Get[string](ctx, tx, `SELECT id FROM orchestrations WHERE undoes = ? AND undoes <> ''
		AND state NOT IN ('canceled', 'succeeded', 'failed', 'planned', 'expired') ORDER BY created_at LIMIT 1`, undoes)
	if errors.Is(err, storage.ErrNotFound) {
		err = nil
	}

	return id, failure.While(err, "finding the orchestration that undoes orchestration %s", undoes)
}
