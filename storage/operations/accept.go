package operations

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/environment-broker/environment-broker/internal/failure"
	"github.com/environment-broker/environment-broker/process"
	"github.com/environment-broker/environment-broker/storage"
)

// insertOperation adds an operation. Its format verb stands for the operation's position. Pending operations of a kind are claimed
// in the order of their turns. A new operation gets the turn after the last pending operation of the same kind and tenant. If
// there is no such operation, it gets the lowest turn of all pending operations of the kind. In this way, tenants take turns
// regardless of how many operations each of them has.
const insertOperation = `INSERT INTO operations (
	id, kind, instance_id, position, tenant, turn, predecessor_id, state, description, progress, problem_message, problem_reason,
	problem_component, finished_stages, skipped_steps, skip_step, skip_reason, stage, step, waiting_for, woken, payload,
	created_at, updated_at, state_changed_at, next_run_at, lease_owner, lease_taken_from, fence, ordered_by, audit,
	trace, visible_to, keep_until, examine_at
) VALUES (
	?, ?, ?, %s,
	?, COALESCE((SELECT MAX(turn) + 1 FROM operations WHERE tenant = ? AND kind = ? AND state = 'pending'),
		(SELECT MIN(turn) FROM operations WHERE kind = ? AND state = 'pending'), 0),
	?, 'pending', ?, '', '', '', '', ?, ?, '', '', '', '', '', FALSE, ?, ?, ?, ?, ?, '', '', 0, ?, ?, ?, ?, ?, ?
)`

// position is the SQL expression for the position after all other operations of the instance. If two concurrent transactions
// compute the same position, the unique index rejects the second one.
const position = `(SELECT COALESCE(MAX(position), 0) + 1 FROM operations WHERE instance_id = ?)`

// firstPosition is the SQL expression for the position of the first operation of an instance. If the instance already has operations,
// it is the lowest of their positions, which the unique index rejects. Position 1 alone would be free once retention has removed the
// oldest operations.
const firstPosition = `COALESCE((SELECT MIN(position) FROM operations WHERE instance_id = ?), 1)`

// Accept adds a pending operation in the caller's transaction, after all operations of its instance. The caller must wake the
// engine after the commit. Of two concurrent calls for one instance, the second fails with an error for which
// storage.IsDuplicate is true. Callers avoid this by locking the instance first.
func (s *Store) Accept(ctx context.Context, tx storage.Tx, operation process.New) error {
	if err := storage.Apply(ctx, tx, s.Next(operation)); err != nil {
		return fmt.Errorf("accepting operation %s: %w", operation.ID, err)
	}

	if operation.Why == "" {
		return nil
	}

	return appendTimeline(ctx, tx, operation.ID, process.Entry{
		Began: operation.At, End: operation.At, Outcome: process.Accepted, Message: operation.Why,
	})
}

// InsertSucceeded adds an operation that has succeeded elsewhere, in the caller's transaction, after all operations of its
// instance. When an object is restored, callers use it to restore the operation that created the object. The operation has no
// start time, so its duration is unknown.
func (s *Store) InsertSucceeded(ctx context.Context, tx storage.Tx, operation process.New) error {
	return s.InsertEnded(ctx, tx, operation, Ending{State: process.Succeeded, At: operation.At})
}

// Ending describes the end of an operation that another program ran.
type Ending struct {
	// State is a terminal state. Problem is the cause of the failure, if the operation failed.
	State   process.State
	Problem process.Problem
	At      time.Time
	// Began is when the operation started, or zero if this is unknown. A suspension or resumption without a start time counts as one
	// that was revoked before it ran.
	Began time.Time
}

// InsertEnded is like InsertSucceeded, but the operation may have ended in any terminal state.
func (s *Store) InsertEnded(ctx context.Context, tx storage.Tx, operation process.New, ending Ending) error {
	if err := s.Accept(ctx, tx, operation); err != nil {
		return err
	}

	_, err := storage.Exec(ctx, tx, `UPDATE operations SET state = ?, started_at = ?, finished_at = ?, problem_message = ?, problem_reason = ?, problem_component = ?
		WHERE id = ?`, string(ending.State), storage.At(ending.Began), storage.At(ending.At), ending.Problem.Message, ending.Problem.Reason, ending.Problem.Component, operation.ID)

	return failure.While(err, "inserting the ended operation %s", operation.ID)
}

// Next returns the statement that accepts another operation of an instance. Unlike Accept, it does not add the timeline entry for
// the operation's Why.
func (s *Store) Next(operation process.New) storage.Statement {
	return s.acceptance(operation, position, operation.InstanceID)
}

// First returns the statement that accepts the first operation of an instance. If the instance already has an operation, the
// statement fails with an error for which storage.IsDuplicate is true, so the caller need not read before.
func (s *Store) First(operation process.New) storage.Statement {
	return s.acceptance(operation, firstPosition, operation.InstanceID)
}

func (s *Store) acceptance(operation process.New, position string, args ...any) storage.Statement {
	at, keepUntil := storage.At(operation.At), storage.Time{}
	if s.keep > 0 {
		keepUntil = storage.At(operation.At.Add(s.keep))
	}

	return storage.Statement{
		Text: fmt.Sprintf(insertOperation, position),
		Args: slices.Concat([]any{operation.ID, operation.Kind, operation.InstanceID}, args, []any{
			operation.Tenant, operation.Tenant, operation.Kind, operation.Kind,
			operation.PredecessorID, operation.Description, names(operation.FinishedStages), names(operation.SkippedSteps),
			s.keys.Seal(operation.Payload, payloadPlace(operation.ID)), at, at, at, at, operation.OrderedBy, operation.Audit,
			operation.Trace, operation.VisibleTo, keepUntil, keepUntil,
		}),
	}
}
