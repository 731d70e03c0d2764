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
	:id, :kind, :instance_id,
	(SELECT COALESCE(MAX(position), 0) + 1 FROM operations WHERE instance_id = :instance_id),
	:tenant,
	COALESCE((SELECT MAX(turn) + 1 FROM operations WHERE tenant = :tenant AND kind = :kind AND state = 'pending'),
		(SELECT MIN(turn) FROM operations WHERE kind = :kind AND state = 'pending'), 0),
	:predecessor_id, 'pending', :description, '', '', '', '', :finished_stages, '[]', '', '', '', '', '', FALSE, :payload,
	:created_at, :created_at, :created_at, :created_at, '', '', 0
) RETURNING position`

// Accept adds a pending operation inside the caller's transaction, behind all operations of its instance, and returns its position among them: 1 for the first one ever. The caller wakes the engine after the commit. Two that
// are accepted for one instance at the same moment do not both pass: the second gets an error for which storage.IsDuplicate is true.
func (s *Store) Accept(ctx context.Context, tx storage.Tx, operation process.New) (int64, error) {
	at := storage.At(operation.At)

	positions, err := storage.SelectNamed[int64](ctx, tx, insertOperation, row{
		ID:             operation.ID,
		Kind:           operation.Kind,
		InstanceID:     operation.InstanceID,
		Tenant:         operation.Tenant,
		PredecessorID:  operation.PredecessorID,
		Description:    operation.Description,
		FinishedStages: operation.FinishedStages,
		Payload:        s.keys.Seal(operation.Payload, payloadPlace(operation.ID)),
		CreatedAt:      at,
	})
	if err != nil {
		return 0, fmt.Errorf("accepting operation %s: %w", operation.ID, err)
	}

	if operation.Why == "" {
		return positions[0], nil
	}

	return positions[0], appendTimeline(ctx, tx, operation.ID, process.Entry{
		Began: at.Time, End: at.Time, Outcome: process.Accepted, Message: operation.Why,
	})
}
