package operations

import (
	"context"
	"fmt"

	"github.com/environment-broker/environment-broker/process"
	"github.com/environment-broker/environment-broker/storage"
)

// insertOperation gives the operation its turn: behind those of its tenant, else with the one whose turn is next. So the tenants
// that wait take turns, however many operations each of them has.
const insertOperation = `INSERT INTO operations (
	id, kind, instance_id, position, tenant, turn, predecessor_id, state, description, progress, problem_message, problem_reason,
	problem_component, finished_stages, skipped_steps, skip_step, skip_reason, stage, step, waiting_for, woken, payload,
	created_at, updated_at, state_changed_at, next_run_at, lease_owner, lease_taken_from, fence
) VALUES (
	?, ?, ?, (SELECT COALESCE(MAX(position), 0) + 1 FROM operations WHERE instance_id = ?),
	?, COALESCE((SELECT MAX(turn) + 1 FROM operations WHERE tenant = ? AND kind = ? AND state = 'pending'),
		(SELECT MIN(turn) FROM operations WHERE kind = ? AND state = 'pending'), 0),
	?, 'pending', ?, '', '', '', '', ?, '[]', '', '', '', '', '', FALSE, ?, ?, ?, ?, ?, '', '', 0
)`

// Accept adds a pending operation inside the caller's transaction, behind all operations of its instance. The caller wakes the engine
// after the commit. Two that are accepted for one instance at the same moment do not both pass: the second gets an error for which
// storage.IsDuplicate is true.
func (s *Store) Accept(ctx context.Context, tx storage.Tx, operation process.New) error {
	if err := storage.Apply(ctx, tx, s.Acceptance(operation)); err != nil {
		return fmt.Errorf("accepting operation %s: %w", operation.ID, err)
	}

	if operation.Why == "" {
		return nil
	}

	return appendTimeline(ctx, tx, operation.ID, process.Entry{
		Began: operation.At, End: operation.At, Outcome: process.Accepted, Message: operation.Why,
	})
}

// Acceptance is what Accept does, for an operation without a Why, as a change to be made together with another one.
func (s *Store) Acceptance(operation process.New) storage.Change {
	at := storage.At(operation.At)

	return storage.Change{Text: insertOperation, Args: []any{
		operation.ID, operation.Kind, operation.InstanceID, operation.InstanceID,
		operation.Tenant, operation.Tenant, operation.Kind, operation.Kind,
		operation.PredecessorID, operation.Description, names(operation.FinishedStages),
		s.keys.Seal(operation.Payload, payloadPlace(operation.ID)), at, at, at, at,
	}}
}
