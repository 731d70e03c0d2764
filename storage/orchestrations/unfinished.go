package orchestrations

import (
	"context"

	"github.com/environment-broker/environment-broker/internal/environment"
	"github.com/environment-broker/environment-broker/internal/failure"
	"github.com/environment-broker/environment-broker/storage"
)

// unfinishedConductor selects the unfinished conductor of an orchestration by its key, see environment.OrchestrationKey.
const unfinishedConductor = `instance_id = ? AND state IN ('pending', 'in progress', 'canceling')`

// Unfinished returns the IDs of the orchestrations that must have a conductor: those that have not ended, except plans.
func (s *Store) Unfinished(ctx context.Context) ([]string, error) {
	ids, err := storage.Select[string](ctx, s.db.Reader(),
		`SELECT id FROM orchestrations WHERE state NOT IN ('canceled', 'succeeded', 'failed', 'planned', 'expired') ORDER BY id`)

	return ids, failure.While(err, "finding unfinished orchestrations")
}

// HasConductor reports whether the orchestration has an unfinished conductor.
func (s *Store) HasConductor(ctx context.Context, tx storage.Tx, id string) (bool, error) {
	found, err := storage.Select[int](ctx, tx, `SELECT 1 FROM operations WHERE `+unfinishedConductor, environment.OrchestrationKey(id))

	return len(found) > 0, failure.While(err, "finding the conductor of orchestration %s", id)
}
