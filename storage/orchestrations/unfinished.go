package orchestrations

import (
	"context"

	"github.com/environment-broker/environment-broker/internal/environment"
	"github.com/environment-broker/environment-broker/internal/failure"
	"github.com/environment-broker/environment-broker/storage"
)

// unfinishedConductor is the SQL condition for the unfinished conductor of an orchestration. Its argument is the key of the
// orchestration, see environment.OrchestrationKey.
const unfinishedConductor = `instance_id = ? AND state IN ('pending', 'in progress', 'canceling')`

// Unfinished returns the IDs of the orchestrations that must have a conductor: all that have not ended, except plans.
func (s *Store) Unfinished(ctx context.Context) ([]string, error) {
	ids, err := storage.Select[string](ctx, s.db.Reader(),
		`SELECT id FROM orchestrations WHERE state NOT IN ('canceled', 'succeeded', 'failed', 'planned', 'expired') ORDER BY id`)

	return ids, failure.While(err, "finding unfinished orchestrations")
}

// ended is the SQL condition that selects orchestrations that have ended.
const ended = `orchestrations.state IN ('canceled', 'succeeded', 'failed', 'expired')`

// NotEnded returns the given IDs that belong to an orchestration or a plan that has not ended.
func (s *Store) NotEnded(ctx context.Context, tx storage.Tx, ids []string) ([]string, error) {
	if len(ids) == 0 {
		return nil, nil
	}

	found, err := storage.Select[string](ctx, tx, `SELECT id FROM orchestrations WHERE id IN (?) AND NOT `+ended, ids)

	return found, failure.While(err, "finding orchestrations")
}

// UnfinishedUpgrades returns the given operation IDs that belong to the upgrades of unfinished orchestrations. It does
// not matter whether the upgrades themselves have ended.
func (s *Store) UnfinishedUpgrades(ctx context.Context, tx storage.Tx, operationIDs []string) ([]string, error) {
	found, err := storage.Select[string](ctx, tx, `SELECT targets.operation_id FROM orchestration_targets AS targets
		JOIN orchestrations ON orchestrations.id = targets.orchestration_id
		WHERE targets.operation_id IN (?) AND NOT `+ended, operationIDs)

	return found, failure.While(err, "finding upgrades of orchestrations")
}

// HasConductor reports whether the orchestration has an unfinished conductor.
func (s *Store) HasConductor(ctx context.Context, tx storage.Tx, id string) (bool, error) {
	found, err := storage.Select[int](ctx, tx, `SELECT 1 FROM operations WHERE `+unfinishedConductor, environment.OrchestrationKey(id))

	return len(found) > 0, failure.While(err, "finding the conductor of orchestration %s", id)
}
