package operations

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/environment-broker/environment-broker/process"
	"github.com/environment-broker/environment-broker/storage"
)

// saveProgress updates an operation if the run still has the lease, and returns the resulting state.
//
// A canceling operation stays canceling until it ends, and then becomes canceled. An operation that was woken during its run is
// next due at the time of the wake-up. The change feed is ordered by state_changed_at, which changes when the state, the
// problem or the progress changes. If only the progress changes, state_changed_at changes no more often than progressInterval
// allows.
const saveProgress = `UPDATE operations SET
	state = CASE WHEN state <> 'canceling' THEN :state
		WHEN :state IN ('succeeded', 'failed', 'canceled') THEN 'canceled' ELSE 'canceling' END,
	description = :description, problem_message = :problem_message, problem_detail = :problem_detail,
	problem_reason = :problem_reason, problem_component = :problem_component, progress = :progress, finished_stages = :finished_stages,
	skipped_steps = :skipped_steps,
	skip_step = CASE WHEN :ended_steps LIKE '%"' || skip_step || '"%' THEN '' ELSE skip_step END,
	skip_reason = CASE WHEN :ended_steps LIKE '%"' || skip_step || '"%' THEN '' ELSE skip_reason END,
	stage = :stage, step = :step, step_began_at = :step_began_at, waiting_for = :waiting_for,
	payload = CASE WHEN :keep_payload THEN payload ELSE :payload END,
	updated_at = :updated_at, finished_at = :finished_at,
	state_changed_at = CASE WHEN (state = :state OR :state = 'in progress') AND problem_reason = :problem_reason
		AND (problem_message = '') = (:problem_message = '')
		AND (progress = :progress OR :progress = '' OR progress <> '' AND state_changed_at > :lately)
		THEN state_changed_at ELSE :updated_at END,
	next_run_at = CASE WHEN woken THEN next_run_at ELSE :next_run_at END,
	lease_owner = CASE WHEN :release THEN '' ELSE lease_owner END, lease_until = CASE WHEN :release THEN NULL ELSE lease_until END
WHERE id = :id AND fence = :fence AND lease_owner = :held_by RETURNING state`

// savedRow contains the arguments of saveProgress.
type savedRow struct {
	row

	// HeldBy is the owner of the run's lease. The row is changed only if this owner still has the lease.
	HeldBy string `db:"held_by"`
	// KeepPayload and EndedSteps are copied from process.Progress.
	KeepPayload bool  `db:"keep_payload"`
	EndedSteps  names `db:"ended_steps"`
	// Release releases the lease. Otherwise, lease_until keeps its value, because only lease renewals change it.
	Release bool `db:"release"`
	// Lately is the time of the save minus progressInterval. A save that changes only the progress makes no entry in the change
	// feed if the previous entry is later than Lately.
	Lately storage.Time `db:"lately"`
}

// These constants limit how often the change feed reports that only the progress of an operation has changed. The minimum time
// between two such entries is the operation's age divided by progressShare, but at least minProgress and at most maxProgress. A
// cluster reports a new percentage every few seconds, and each entry makes clients poll. With this limit, about 30 polls show a
// cluster's progress, whether its creation takes ten seconds or half an hour.
const (
	progressShare = 20
	minProgress   = time.Second
	maxProgress   = time.Minute
)

// progressInterval returns the minimum time between two entries in the change feed that report only progress, for an operation of
// the given age.
func progressInterval(age time.Duration) time.Duration {
	return min(max(age/progressShare, minProgress), maxProgress)
}

// saveAttempts is the maximum number of attempts to save. An attempt fails if an operator's intervention adds a timeline entry at
// the same time, because both compute the same sequence number. On PostgreSQL, it also fails if the statements of AtEnd lock rows
// in another order than a concurrent transaction.
const saveAttempts = 3

// Effect is the type that a process.Effect must have for this store. It writes rows in the transaction in which the operation
// succeeds. If that transaction fails, the effect is called again. To avoid deadlocks, it must lock instances before bindings, as
// requests do. Operations are locked last.
type Effect func(ctx context.Context, tx storage.Tx) error

// errNotSucceeded rolls back the transaction with the effect if the operation was canceled.
var errNotSucceeded = errors.New("the operation was canceled")

// Save implements process.Store. On PostgreSQL it writes the row, the attempts and the timeline in one statement.
func (s *Store) Save(ctx context.Context, progress process.Progress) (process.State, error) {
	row := s.saving.Statement(s.saved(progress))
	others := slices.Concat(attempts(progress), insertEntries(progress.Record.ID, progress.Timeline))

	if progress.Record.State.Terminal() {
		others = append(others, s.atEnd(progress.Record)...)
	}

	var (
		state     string
		leaseHeld bool
		err       error
	)

	for range saveAttempts {
		if state, leaseHeld, err = s.write(ctx, progress.Effect, row, others); !collided(err) {
			break
		}
	}

	if err == nil && !leaseHeld {
		err = process.ErrLeaseLost
	}

	if err != nil {
		return "", fmt.Errorf("saving operation %s: %w", progress.Record.ID, err)
	}

	return process.State(state), nil
}

// collided reports whether the error means that the timeline already had an entry with the same sequence number, or that PostgreSQL
// has aborted the transaction because of a deadlock. It returns false for errors that the effect caused.
func collided(err error) bool {
	_, effect := errors.AsType[*process.EffectError](err)

	return !effect && (storage.IsDuplicate(err) || storage.IsDeadlock(err))
}

// write executes the effect, if any, and then the statements, in one transaction. It returns the resulting state, and false if the
// lease was lost. If the operation was canceled, write executes the statements without the effect.
func (s *Store) write(ctx context.Context, effect process.Effect, row storage.Statement, others []storage.Statement,
) (state string, leaseHeld bool, err error) {
	if effect == nil {
		return s.db.ExecCTE(ctx, row, others...)
	}

	err = s.db.InTx(ctx, func(tx storage.Tx) error {
		if err := makeEffect(ctx, tx, effect); err != nil {
			return &process.EffectError{Err: err}
		}

		state, leaseHeld, err = storage.ApplyCTE(ctx, tx, row, others...)
		if err == nil && state != string(process.Succeeded) {
			err = errNotSucceeded
		}

		return err
	})

	switch {
	case !errors.Is(err, errNotSucceeded):
		return state, leaseHeld, err
	case !leaseHeld:
		return "", false, nil
	default:
		return s.db.ExecCTE(ctx, row, others...)
	}
}

// makeEffect calls the effect. It fails if the effect does not have the type Effect.
func makeEffect(ctx context.Context, tx storage.Tx, effect process.Effect) error {
	made, is := effect.(Effect)
	if !is {
		return fmt.Errorf("unexpected effect type %T", effect)
	}

	return made(ctx, tx)
}

// saved returns the arguments of saveProgress. It encrypts the payload only if saveProgress writes the payload.
func (s *Store) saved(progress process.Progress) savedRow {
	record := progress.Record

	saved := savedRow{
		HeldBy:      record.Lease.Owner,
		KeepPayload: progress.KeepPayload,
		EndedSteps:  progress.EndedSteps,
		Release:     progress.Release,
		Lately:      storage.At(progress.Now.Add(-progressInterval(progress.Now.Sub(record.StartedAt)))),
		row: row{
			ID:               record.ID,
			State:            string(record.State),
			Description:      record.Description,
			ProblemMessage:   record.Problem.Message,
			ProblemDetail:    record.Problem.Detail,
			ProblemReason:    record.Problem.Reason,
			ProblemComponent: record.Problem.Component,
			Progress:         record.Progress,
			FinishedStages:   record.FinishedStages,
			SkippedSteps:     record.SkippedSteps,
			Stage:            record.Stage,
			Step:             record.Step,
			StepBeganAt:      storage.At(record.StepBegan),
			WaitingFor:       record.WaitingFor,
			UpdatedAt:        storage.At(progress.Now),
			FinishedAt:       storage.At(record.FinishedAt),
			NextRunAt:        storage.At(record.NextRun),
			Fence:            record.Lease.Fence,
		},
	}

	if !progress.KeepPayload {
		saved.Payload = s.keys.Seal(record.Payload, payloadPlace(record.ID))
	}

	return saved
}

// attempts returns the statements that update step_attempts. They run in one CTE with saveProgress. If the lease was lost,
// saveProgress returns no row, and the statements change nothing.
func attempts(progress process.Progress) []storage.Statement {
	statements := make([]storage.Statement, 0, len(progress.Cleared)+len(progress.Failed))

	for _, attempt := range progress.Cleared {
		statements = append(statements, storage.Statement{
			Text: `DELETE FROM step_attempts WHERE operation_id = ? AND step = ? AND EXISTS (SELECT 1 FROM first)`,
			Args: []any{progress.Record.ID, attempt.Step},
		})
	}

	for _, attempt := range progress.Failed {
		statements = append(statements, storage.Statement{
			Text: `INSERT INTO step_attempts
				(operation_id, stage, step, number, first_at, last_at, failures, failing_since, last_error)
				SELECT ?, ?, ?, ?, ?, ?, ?, ?, ? FROM first WHERE TRUE
				ON CONFLICT (operation_id, step) DO UPDATE SET number = excluded.number, last_at = excluded.last_at,
				failures = excluded.failures, failing_since = excluded.failing_since, last_error = excluded.last_error`,
			Args: []any{
				progress.Record.ID, attempt.Stage, attempt.Step, attempt.Number, storage.At(attempt.First), storage.At(attempt.Last),
				attempt.Failures, storage.At(attempt.FailingSince), attempt.LastError,
			},
		})
	}

	return statements
}
