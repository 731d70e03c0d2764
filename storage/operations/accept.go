package operations

import (
	"context"
	"fmt"
	"time"

	"github.com/environment-broker/environment-broker/process"
	"github.com/environment-broker/environment-broker/storage"
)

const insertOperation = `INSERT INTO operations (
	id, kind, instance_id, position, predecessor_id, state, description, problem_message, problem_reason, problem_component,
	finished_stages, skipped_steps, stage, step, waiting_for, woken, payload, created_at, updated_at, state_changed_at,
	next_run_at,	lease_owner, lease_taken_from, fence
) VALUES (
	:id, :kind, :instance_id,
	(SELECT COALESCE(MAX(position), 0) + 1 FROM operations WHERE instance_id = :instance_id),
	:predecessor_id, :state, :description, '', '', '', :finished_stages, '[]', '', '', '', FALSE, :payload, :created_at,
	:created_at, :created_at, :created_at, '', '', 0
)`

// Accept adds a pending operation and its first line of timeline inside the caller's transaction, behind all operations of its
// instance. The caller wakes the engine after the commit. Two that are accepted for one instance at the same moment do not both
// pass: the second gets an error for which storage.IsDuplicate is true.
func (s *Store) Accept(ctx context.Context, tx storage.Tx, operation process.New) error {
	at := storage.At(operation.At)

	err := storage.InsertNamed(ctx, tx, insertOperation, row{
		ID:             operation.ID,
		Kind:           operation.Kind,
		InstanceID:     operation.InstanceID,
		PredecessorID:  operation.PredecessorID,
		State:          string(process.Pending),
		Description:    operation.Description,
		FinishedStages: operation.FinishedStages,
		Payload:        s.keys.Seal(operation.Payload, payloadPlace(operation.ID)),
		CreatedAt:      at,
	})
	if err != nil {
		return fmt.Errorf("accepting operation %s: %w", operation.ID, err)
	}

	return appendTimeline(ctx, tx, operation.ID, process.Entry{
		Began: at.Time, End: at.Time, Outcome: process.Accepted, Message: operation.Kind,
	})
}

// Cancel asks every unfinished operation of the instance to end: a pending one is canceled at once, the active one becomes
// canceling, is due at once and ends at its next safe point. It returns the ids of the operations that it concerned.
func (s *Store) Cancel(ctx context.Context, tx storage.Tx, instanceID, why string, now time.Time) ([]string, error) {
	at := storage.At(now)

	canceled, err := storage.Select[string](ctx, tx, `UPDATE operations
		SET state = 'canceled', updated_at = ?, state_changed_at = ?, finished_at = ?
		WHERE instance_id = ? AND state = 'pending' RETURNING id`, at, at, at, instanceID)
	if err != nil {
		return nil, fmt.Errorf("canceling pending operations of %s: %w", instanceID, err)
	}

	for _, id := range canceled {
		if err := appendTimeline(ctx, tx, id, process.Entry{
			Began: now, End: now, Outcome: process.OperationCanceled, Message: why,
		}); err != nil {
			return nil, err
		}
	}

	canceling, err := storage.Select[string](ctx, tx, `UPDATE operations
		SET state = 'canceling', updated_at = ?, state_changed_at = ?, next_run_at = ?, woken = TRUE
		WHERE instance_id = ? AND state = 'in progress' RETURNING id`, at, at, at, instanceID)
	if err != nil {
		return nil, fmt.Errorf("canceling the operation of %s: %w", instanceID, err)
	}

	for _, id := range canceling {
		if err := appendTimeline(ctx, tx, id, process.Entry{
			Began: now, End: now, Outcome: process.CancelRequested, Message: why,
		}); err != nil {
			return nil, err
		}
	}

	return append(canceled, canceling...), nil
}
