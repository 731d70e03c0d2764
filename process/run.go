package process

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/environment-broker/environment-broker/internal/failure"
	"github.com/environment-broker/environment-broker/internal/logging"
)

// run carries one claimed operation as far as it goes. What it did since its last save is kept in progress.
type run[D any] struct {
	engine    *Engine[D]
	lease     *lease
	operation Operation[D]
	takenFrom string
	attempts  map[string]Attempt
	progress  Progress
	log       logrus.FieldLogger

	// traced ends what the tracer was told of the attempt that runs.
	traced func(Outcome, string)

	unreadable  error
	keepPayload bool
	uncertain   bool // a write has failed: nothing more is written
}

func (e *Engine[D]) newRun(work Claimed, held *lease) *run[D] {
	attempts := make(map[string]Attempt, len(work.Attempts))
	for _, attempt := range work.Attempts {
		attempts[attempt.Step] = attempt
	}

	return &run[D]{
		engine:    e,
		lease:     held,
		operation: Operation[D]{Record: work.Record},
		takenFrom: work.TakenFrom,
		attempts:  attempts,

		traced:     func(Outcome, string) {},
		unreadable: work.Unreadable,
		log: e.log.WithFields(logrus.Fields{
			logging.OperationID: work.Record.ID,
			logging.InstanceID:  work.Record.InstanceID,
			logging.Kind:        work.Record.Kind,
		}),
	}
}

// carry runs the unfinished stages. It returns when the operation ended, waits, was handed back, or was lost.
func (r *run[D]) carry(ctx context.Context) {
	if r.takenFrom != "" {
		r.note(TakenOver, "the replica that carried the operation stopped renewing its lease")
	}

	if err := r.decode(); err != nil {
		r.keepPayload = true
		r.log.WithError(err).Error("the data of the operation cannot be read")
		r.fail(ctx, failure.Wrap(failure.Internal, err, "the data of the operation cannot be read"))

		return
	}

	process := r.engine.processes[r.operation.Kind]

	for _, stage := range process.Stages {
		if r.operation.Finished(stage.Name) {
			continue
		}

		if !r.runStage(ctx, process, stage) {
			return
		}

		r.operation.FinishedStages = append(r.operation.FinishedStages, stage.Name)

		if stage.Name != process.Stages[len(process.Stages)-1].Name && !r.write(ctx) {
			return
		}
	}

	r.finish(ctx, Succeeded, OperationSucceeded, "")
}

// decode reads the data that the steps share.
func (r *run[D]) decode() error {
	if r.unreadable != nil {
		return r.unreadable
	}

	if err := json.Unmarshal(r.operation.Payload, &r.operation.Data); err != nil {
		return fmt.Errorf("decoding the payload: %w", err)
	}

	return nil
}

// runStage runs the steps of a stage and reports whether all of them are done.
func (r *run[D]) runStage(ctx context.Context, process Process[D], stage Stage[D]) bool {
	for _, task := range stage.Steps {
		if !r.mayGoOn(ctx, process) {
			return false
		}

		wanted, err := r.wanted(task)
		if err != nil {
			r.fail(ctx, err)

			return false
		}

		if !wanted || r.leftOut(stage.Name, task.Step.Name()) {
			continue
		}

		if !r.runStep(ctx, stage, task.Step) {
			return false
		}
	}

	return true
}

// wanted reports whether the step is to be run at all.
func (r *run[D]) wanted(task Task[D]) (wanted bool, err error) {
	if task.When == nil {
		return true, nil
	}

	err = guard(r.log.WithField(logging.Step, task.Step.Name()), func() { wanted = task.When(r.operation) })

	return wanted, err
}

// leftOut reports whether the step was given up, or an operator has it left out: that is recorded then.
func (r *run[D]) leftOut(stage, step string) bool {
	if r.operation.Skip.Step == step {
		now := r.engine.clock.Now()
		attempt := r.attempts[step]
		attempt.Stage, attempt.Step, attempt.Last = stage, step, now

		r.operation.SkippedSteps = append(r.operation.SkippedSteps, step)
		r.operation.Problem, r.operation.Progress, r.operation.WaitingFor = Problem{}, "", ""
		r.progress.Cleared = append(r.progress.Cleared, attempt)
		r.progress.LeftOut = step
		r.entry(attempt, Skipped, r.operation.Skip.Reason, time.Time{})
		r.operation.Skip = Skip{}
		delete(r.attempts, step)
	}

	return slices.Contains(r.operation.SkippedSteps, step)
}

// mayGoOn is the safe point before each step: here an operation is canceled, handed back, or stopped by its limit.
func (r *run[D]) mayGoOn(ctx context.Context, process Process[D]) bool {
	r.engine.mutex.Lock()
	canceling := r.lease.canceling
	r.engine.mutex.Unlock()

	now := r.engine.clock.Now()

	switch {
	case canceling:
		r.finish(ctx, Canceled, OperationCanceled, "")
	case r.overdue(process, now):
		r.failWith(ctx, r.engine.timedOut("the operation did not come to an end", process.Limit))
	case ctx.Err() != nil || r.engine.isStopping():
		r.release(ctx, now)
	default:
		return true
	}

	return false
}

func (r *run[D]) overdue(process Process[D], now time.Time) bool {
	return !r.operation.StartedAt.IsZero() && now.Sub(r.operation.StartedAt) >= process.Limit
}

// runStep runs a step once, records what came of it, and reports whether the step is done.
func (r *run[D]) runStep(ctx context.Context, stage Stage[D], step Step[D]) bool {
	attempt := r.begin(stage.Name, step.Name())

	log := r.log.WithFields(logrus.Fields{
		logging.Stage: stage.Name, logging.Step: step.Name(), logging.Attempt: attempt.Number,
	})

	traced, ended := r.engine.config.Tracer.Attempt(ctx, r.operation.Record, attempt)
	r.traced = ended

	result, wait, err := call(traced, step, r.operation, log)
	if ctx.Err() != nil && err != nil {
		r.interrupted(attempt)
		r.release(ctx, r.engine.clock.Now())

		return false
	}

	// What a step that panicked or broke its contract returns is not used; what it has saved stays.
	if fault := misuse(r.operation, result, wait, err); fault != nil {
		r.stepFailed(ctx, log, attempt, fault)

		return false
	}

	// The record is the engine's; of it a step sets only these two.
	record := r.operation.Record
	record.Description, record.WaitingFor = result.Description, result.WaitingFor
	r.operation = result
	r.operation.Record = record

	switch {
	case err != nil && failure.MappingOf(failure.KindOf(err)).Retry:
		r.retry(ctx, log, stage, attempt, err)
	case err != nil:
		r.stepFailed(ctx, log, attempt, err)
	case wait > 0:
		r.wait(ctx, log, attempt, wait)
	default:
		r.done(log, attempt)

		return true
	}

	return false
}

// begin counts the attempt and shows it to the heartbeat.
func (r *run[D]) begin(stage, step string) Attempt {
	now := r.engine.clock.Now()

	attempt, again := r.attempts[step]
	if !again {
		attempt = Attempt{Stage: stage, Step: step, First: now}
	}

	attempt.Number++
	attempt.Last = now

	r.operation.Stage, r.operation.Step, r.operation.StepBegan = stage, step, now
	r.operation.attempt, r.operation.now, r.operation.note = attempt, now, note{}
	r.operation.save = r.checkpoint

	r.engine.mutex.Lock()
	r.lease.Stage, r.lease.Step, r.lease.StepBegan = stage, step, now
	r.engine.mutex.Unlock()

	return attempt
}

// done records a step that succeeded, or that gave up without failing the operation.
func (r *run[D]) done(log logrus.FieldLogger, attempt Attempt) {
	outcome, message := Done, r.operation.note.message

	if r.operation.note.notCompleted {
		outcome = NotCompleted
		r.operation.SkippedSteps = append(r.operation.SkippedSteps, attempt.Step)

		log.WithField(logging.Reason, message).Warn("step not completed, going on without it")
	}

	if attempt.Number > 1 {
		r.progress.Cleared = append(r.progress.Cleared, attempt)
		delete(r.attempts, attempt.Step)
	}

	r.operation.Problem, r.operation.Progress = Problem{}, ""
	r.entry(attempt, outcome, message, time.Time{})
}

// wait records a step that comes back after a while.
func (r *run[D]) wait(ctx context.Context, log logrus.FieldLogger, attempt Attempt, wait time.Duration) {
	outcome, next := Waiting, r.nextRun(wait)

	r.operation.Problem, r.operation.Progress = Problem{}, r.operation.note.message
	if r.operation.note.failed {
		outcome = Retrying
		r.operation.Problem, r.operation.Progress = Problem{Message: r.operation.note.message}, ""
		attempt = attempt.failing()
		attempt.LastError = r.operation.note.message
	} else {
		attempt.Failures, attempt.FailingSince = 0, time.Time{}
	}

	log.WithFields(logrus.Fields{logging.Reason: r.operation.note.message, logging.NextRun: next}).Debug("step comes back")
	r.comeBack(ctx, attempt, outcome, r.operation.note.message, next)
}

// retry records a passing error, or fails the operation when the stage's window has passed.
func (r *run[D]) retry(ctx context.Context, log logrus.FieldLogger, stage Stage[D], attempt Attempt, err error) {
	if attempt.failingFor() >= stage.Retry.Window {
		r.stepFailed(ctx, log, attempt, gaveUp("", err, stage.Retry.Window))

		return
	}

	attempt = attempt.failing()
	next := r.nextRun(stage.Retry.Interval(attempt.Failures))
	r.operation.Problem, r.operation.Progress = r.engine.problemOf(err), ""
	attempt.LastError = r.operation.Problem.Message

	log.WithError(err).WithField(logging.NextRun, next).Warn("step failed for now")
	r.comeBack(ctx, attempt, Retrying, r.operation.Problem.Message, next)
}

// nextRun is after the wait, and no later than the limit of the operation: it ends on time, however long its step waits.
func (r *run[D]) nextRun(wait time.Duration) time.Time {
	next := r.engine.clock.Now().Add(wait)
	if end := r.operation.StartedAt.Add(r.engine.processes[r.operation.Kind].Limit); end.Before(next) {
		return end
	}

	return next
}

// comeBack keeps the attempt and gives the lease back until the next run.
func (r *run[D]) comeBack(ctx context.Context, attempt Attempt, outcome Outcome, message string, next time.Time) {
	r.progress.Failed = append(r.progress.Failed, attempt)
	r.entry(attempt, outcome, message, next)
	r.release(ctx, next)
}

// stepFailed records an error for good.
func (r *run[D]) stepFailed(ctx context.Context, log logrus.FieldLogger, attempt Attempt, err error) {
	log.WithError(err).Error("step failed")
	r.entry(attempt, StepFailed, failure.Of(err).Text, time.Time{})
	r.fail(ctx, err)
}

// interrupted records an attempt that did not get to an end, because the replica stops or the lease was lost.
func (r *run[D]) interrupted(attempt Attempt) {
	r.entry(attempt, HandedBack, "interrupted, begins again", r.engine.clock.Now())
}

// entry adds a line about an attempt to the timeline.
func (r *run[D]) entry(attempt Attempt, outcome Outcome, message string, next time.Time) {
	now := r.engine.clock.Now()
	r.progress.Timeline = append(r.progress.Timeline, Entry{
		Stage: attempt.Stage, Step: attempt.Step, Attempt: attempt.Number,
		Began: attempt.Last, End: now, Outcome: outcome, Message: presentable(message), NextRun: next,
	})
	r.engine.config.Observer.Attempted(r.operation.Kind, attempt.Step, outcome, now.Sub(attempt.Last))

	ended := r.traced
	r.traced = func(Outcome, string) {} // a step that is left out has no attempt
	ended(outcome, presentable(message))
}

// note adds a line about the operation as a whole.
func (r *run[D]) note(outcome Outcome, message string) {
	now := r.engine.clock.Now()
	r.progress.Timeline = append(r.progress.Timeline, Entry{
		Began: now, End: now, Outcome: outcome, Message: presentable(message),
	})
}
