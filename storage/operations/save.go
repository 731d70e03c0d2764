package operations

import (
	"context"
	"fmt"
	"time"

	"github.com/environment-broker/environment-broker/process"
	"github.com/environment-broker/environment-broker/storage"
)

// saveProgress writes under the fence. An operation that is to be canceled stays so until it ends, and then it was canceled. One
// that was woken while it ran keeps the moment at which it was woken as its next run. Who follows the changes is told of another
// state, of another reason that holds it up, and of progress, but not more often than each progressTold.
const saveProgress = `UPDATE operations SET
	state = CASE WHEN state <> 'canceling' THEN :state
		WHEN :state IN ('succeeded', 'failed', 'canceled') THEN 'canceled' ELSE 'canceling' END,
	description = :description, problem_message = :problem_message, problem_reason = :problem_reason,
	problem_component = :problem_component, progress = :progress, finished_stages = :finished_stages,
	skipped_steps = :skipped_steps, skip_step = CASE WHEN :skip_taken THEN '' ELSE skip_step END,
	skip_reason = CASE WHEN :skip_taken THEN '' ELSE skip_reason END,
	stage = :stage, step = :step, step_began_at = :step_began_at, waiting_for = :waiting_for,
	payload = CASE WHEN :keep_payload THEN payload ELSE :payload END,
	updated_at = :updated_at, finished_at = :finished_at,
	state_changed_at = CASE WHEN (state = :state OR :state = 'in progress') AND problem_reason = :problem_reason
		AND (problem_message = '') = (:problem_message = '')
		AND (progress = :progress OR :progress = '' OR progress <> '' AND state_changed_at > :lately)
		THEN state_changed_at ELSE :updated_at END,
	next_run_at = CASE WHEN woken THEN next_run_at ELSE :next_run_at END,
	lease_owner = :lease_owner, lease_until = :lease_until
WHERE id = :id AND fence = :fence AND lease_owner = :held_by RETURNING state`

// savedRow is a row with the owner that its lease must still have.
type savedRow struct {
	row

	HeldBy      string `db:"held_by"`
	KeepPayload bool   `db:"keep_payload"`
	SkipTaken   bool   `db:"skip_taken"`
	// Lately is since when a change is so young that progress is not told beside it.
	Lately storage.Time `db:"lately"`
}

// progressTold is how often progress is told to those who follow the changes: of a cluster that is made there is a new percentage
// every few seconds.
const progressTold = time.Minute

// Save implements process.Store.
func (s *Store) Save(ctx context.Context, progress process.Progress) (process.State, error) {
	var state process.State

	work := func(tx storage.Tx) error {
		states, err := storage.SelectNamed[process.State](ctx, tx, saveProgress, s.saved(progress))
		if err != nil {
			return err
		}

		if len(states) == 0 {
			return process.ErrLeaseLost
		}

		state = states[0]

		if err := saveAttempts(ctx, tx, progress); err != nil {
			return err
		}

		for i := range progress.Timeline {
			ended := progress.Timeline[i].Outcome
			if state == process.Canceled && (ended == process.OperationSucceeded || ended == process.OperationFailed) {
				progress.Timeline[i].Outcome = process.OperationCanceled
			}
		}

		return appendTimeline(ctx, tx, progress.Record.ID, progress.Timeline...)
	}

	var err error
	if len(progress.Timeline)+len(progress.Failed)+len(progress.Cleared) == 0 {
		err = work(s.db.Writer()) // an intent: one statement
	} else {
		err = s.db.InTx(ctx, work)
	}

	if err != nil {
		return "", fmt.Errorf("saving operation %s: %w", progress.Record.ID, err)
	}

	return state, nil
}

func (s *Store) saved(progress process.Progress) savedRow {
	record := progress.Record

	saved := savedRow{
		HeldBy:      record.Lease.Owner,
		KeepPayload: progress.KeepPayload,
		SkipTaken:   progress.SkipTaken,
		Lately:      storage.At(progress.Now.Add(-progressTold)),
		row: row{
			ID:               record.ID,
			State:            string(record.State),
			Description:      record.Description,
			ProblemMessage:   record.Problem.Message,
			ProblemReason:    record.Problem.Reason,
			ProblemComponent: record.Problem.Component,
			Progress:         record.Progress,
			FinishedStages:   record.FinishedStages,
			SkippedSteps:     record.SkippedSteps,
			Stage:            record.Stage,
			Step:             record.Step,
			StepBeganAt:      storage.At(record.StepBegan),
			WaitingFor:       record.WaitingFor,
			Payload:          s.keys.Seal(record.Payload, payloadPlace(record.ID)),
			UpdatedAt:        storage.At(progress.Now),
			FinishedAt:       storage.At(record.FinishedAt),
			NextRunAt:        storage.At(record.NextRun),
			LeaseOwner:       record.Lease.Owner,
			LeaseUntil:       storage.At(record.Lease.Until),
			Fence:            record.Lease.Fence,
		},
	}

	if progress.Release {
		saved.LeaseOwner, saved.LeaseUntil = "", storage.Time{}
	}

	return saved
}

func saveAttempts(ctx context.Context, tx storage.Tx, progress process.Progress) error {
	for _, attempt := range progress.Cleared {
		if _, err := storage.Exec(ctx, tx, `DELETE FROM step_attempts WHERE operation_id = ? AND step = ?`,
			progress.Record.ID, attempt.Step); err != nil {
			return err
		}
	}

	for _, attempt := range progress.Failed {
		if _, err := storage.Exec(ctx, tx, `INSERT INTO step_attempts
			(operation_id, stage, step, number, first_at, last_at, failures, failing_since, last_error)
			VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)
			ON CONFLICT (operation_id, step) DO UPDATE SET number = excluded.number, last_at = excluded.last_at,
			failures = excluded.failures, failing_since = excluded.failing_since, last_error = excluded.last_error`,
			progress.Record.ID, attempt.Stage, attempt.Step, attempt.Number, storage.At(attempt.First), storage.At(attempt.Last),
			attempt.Failures, storage.At(attempt.FailingSince), attempt.LastError); err != nil {
			return err
		}
	}

	return nil
}
