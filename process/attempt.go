package process

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/environment-broker/environment-broker/internal/failure"
	"github.com/environment-broker/environment-broker/internal/logging"
)

// errPanic marks the error that guard returns, to distinguish a panic from an error that the step returned.
var errPanic = errors.New("panic")

// runStep runs a step once, records the result, and reports whether the run may continue with the next step.
func (r *run[D]) runStep(ctx context.Context, stage Stage[D], step Step[D]) bool {
	attempt := r.begin(stage.Name, step.Name())

	log := r.log.WithFields(logrus.Fields{
		logging.Stage: stage.Name, logging.Step: step.Name(), logging.Attempt: attempt.Number,
	})

	traced, end := r.engine.config.Tracer.Attempt(ctx, r.operation.Record, attempt)
	r.endTrace = end

	result, wait, err := call(traced, step, r.operation, log)
	if ctx.Err() != nil && err != nil {
		// The engine has interrupted the attempt: the replica is stopping, the lease was lost, or the operation has reached its
		// limit.
		r.addEntry(attempt, HandedBack, "interrupted, will run again", r.engine.clock.Now())
		r.release(ctx, r.engine.clock.Now())

		return false
	}

	// Discard the result of a step that panicked or broke its contract. Data that the step has saved stays stored.
	last := r.engine.processes[r.operation.Kind].endsWith(step.Name())
	if violation := checkResult(r.operation, result, wait, err, last); violation != nil {
		r.stepFailed(ctx, log, attempt, violation)

		return false
	}

	// The engine controls the record. A step may change only these two fields.
	record := r.operation.Record
	record.Description, record.WaitingFor = result.Description, result.WaitingFor
	r.operation = result
	r.operation.Record = record

	switch {
	case err != nil:
		r.failedAttempt(ctx, log, stage, attempt, err)
	case wait > 0:
		r.wait(ctx, log, attempt, wait)
	case r.operation.Effect != nil:
		r.succeed(ctx, log, stage, attempt)
	default:
		r.done(log, attempt)

		return true
	}

	return false
}

// begin counts the attempt and passes the step to the lease renewal, which stores the step if it is still running at the next
// renewal.
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

// call runs the step. If the step panics, call returns the unchanged operation and guard's error.
func call[D any](ctx context.Context, step Step[D], operation Operation[D], log logrus.FieldLogger,
) (result Operation[D], wait time.Duration, err error) {
	panicked := guard(log, "step", func() { result, wait, err = step.Run(ctx, operation, log) })
	if panicked != nil {
		return operation, 0, panicked
	}

	return result, wait, err
}

// guard calls work. It turns a panic into an internal failure of this operation and logs the stack. name says what panicked, such
// as "step". Other operations of the replica continue.
func guard(log logrus.FieldLogger, name string, work func()) (err error) {
	defer func() {
		if value := recover(); value != nil {
			log.WithField(logging.Stack, string(debug.Stack())).Errorf("%s panicked: %v", name, value)

			err = failure.Wrap(failure.Internal, errPanic, "internal error")
		}
	}()

	work()

	return nil
}

// checkResult rejects results that break the contract of Step. The operation then fails, because continuing would lose data or
// hide an error. last is true for the last step of the process.
func checkResult[D any](before, after Operation[D], wait time.Duration, err error, last bool) error {
	var violation string

	switch {
	case errors.Is(err, errPanic):
		return err
	case err != nil && wait != 0:
		violation = fmt.Sprintf("a duration (%s) together with an error", wait)
	case wait < 0:
		violation = fmt.Sprintf("a negative duration (%s)", wait)
	case after.ID != before.ID:
		violation = "an operation other than its input"
	case after.Effect != nil && !last:
		violation = "an effect, but is not the last step of the process"
	default:
		return nil
	}

	return failure.Wrap(failure.Internal, errors.Join(fmt.Errorf("the step returned %s", violation), err), "internal error")
}

// done records a step that succeeded, or that gave up without failing the operation.
func (r *run[D]) done(log logrus.FieldLogger, attempt Attempt) {
	outcome, message := Done, r.operation.note.message

	if r.operation.note.notCompleted {
		outcome = NotCompleted
		r.operation.SkippedSteps = append(r.operation.SkippedSteps, attempt.Step)

		log.WithField(logging.Reason, message).Warn("step not completed, continuing without it")
	}

	r.clear(attempt)

	// When a stage restarts, the steps before the waiting or failed one succeed again. The timeline already has these successes.
	// Repeating them would split the attempts of the waiting step, which otherwise share one entry however long an outage lasts.
	if outcome == Done && attempt.Number == 1 && r.restarted(attempt.Stage) {
		r.report(attempt, outcome, message)

		return
	}

	r.addEntry(attempt, outcome, message, time.Time{})
}

// restarted reports whether the stage runs again because one of its steps waited or failed.
func (r *run[D]) restarted(stage string) bool {
	for _, attempt := range r.attempts {
		if attempt.Stage == stage {
			return true
		}
	}

	return false
}

// clear deletes the earlier attempts of a step that is done, the problem or progress that they left, and a request to skip the step
// that arrived during the attempt.
func (r *run[D]) clear(attempt Attempt) {
	r.progress.EndedSteps = append(r.progress.EndedSteps, attempt.Step)

	if attempt.Number > 1 {
		r.progress.Cleared = append(r.progress.Cleared, attempt)
		delete(r.attempts, attempt.Step)
	}

	r.operation.Problem, r.operation.Progress = Problem{}, ""
}

// succeed ends the operation successfully. It stores the success and the effect that the last step has set in one transaction. If
// the effect fails, nothing is stored: succeed discards the success and handles the error as if the step had returned it.
func (r *run[D]) succeed(ctx context.Context, log logrus.FieldLogger, stage Stage[D], attempt Attempt) {
	before := *r

	r.clear(attempt)
	r.appendEntry(attempt, Done, "", time.Time{})
	r.operation.FinishedStages = append(slices.Clip(r.operation.FinishedStages), stage.Name)
	r.progress.Effect = r.operation.Effect
	r.end(Succeeded, OperationSucceeded, "")

	err := r.store(ctx)
	if failed, is := errors.AsType[*EffectError](err); is {
		*r = before
		r.failedAttempt(ctx, log, stage, attempt, failed.Err)

		return
	}

	r.report(attempt, Done, "")

	if r.stored(err) {
		r.engine.Ended(r.operation.Record)
	}
}

// failedAttempt records an error that a step returned. The operation fails unless the error is retryable.
func (r *run[D]) failedAttempt(ctx context.Context, log logrus.FieldLogger, stage Stage[D], attempt Attempt, err error) {
	if failure.MappingOf(failure.KindOf(err)).Retry {
		r.retry(ctx, log, stage, attempt, err)
	} else {
		r.stepFailed(ctx, log, attempt, err)
	}
}

// wait records a step that must run again. A plain wait ends the retry window of the step; a wait from RetryOperation counts as
// a failure.
func (r *run[D]) wait(ctx context.Context, log logrus.FieldLogger, attempt Attempt, wait time.Duration) {
	outcome, next := Waiting, r.nextRun(wait)

	r.operation.Problem, r.operation.Progress = Problem{}, r.operation.note.message
	if r.operation.note.failed {
		outcome = Retrying
		r.operation.Problem, r.operation.Progress = r.operation.note.problem, ""
		attempt = attempt.failing()
		attempt.LastError = r.operation.note.message
	} else {
		attempt.Failures, attempt.FailingSince = 0, time.Time{}
	}

	log.WithFields(logrus.Fields{logging.Reason: r.operation.note.message, logging.NextRun: next}).Debug("step will run again later")
	r.runAgain(ctx, attempt, outcome, r.operation.note.message, next)
}

// nextRun returns when the step runs again: after the wait, or earlier if the operation reaches its limit during the wait, so
// that the operation fails on time.
func (r *run[D]) nextRun(wait time.Duration) time.Time {
	next := r.engine.clock.Now().Add(wait)
	if end := r.operation.StartedAt.Add(r.engine.processes[r.operation.Kind].Limit); end.Before(next) {
		return end
	}

	return next
}

// runAgain stores the attempt and releases the lease. The step runs again at the time next.
func (r *run[D]) runAgain(ctx context.Context, attempt Attempt, outcome Outcome, message string, next time.Time) {
	r.progress.Failed = append(r.progress.Failed, attempt)
	r.addEntry(attempt, outcome, message, next)
	r.release(ctx, next)
}

// stepFailed records a permanent error and fails the operation.
func (r *run[D]) stepFailed(ctx context.Context, log logrus.FieldLogger, attempt Attempt, err error) {
	log.WithError(err).Error("step failed")
	r.addEntry(attempt, StepFailed, failure.Of(err).ForOperators(), time.Time{})
	r.fail(ctx, err)
}

// addEntry adds an attempt to the timeline, and reports it to the Observer and the Tracer.
func (r *run[D]) addEntry(attempt Attempt, outcome Outcome, message string, next time.Time) {
	r.appendEntry(attempt, outcome, message, next)
	r.report(attempt, outcome, message)
}

// appendEntry adds an attempt to the timeline.
func (r *run[D]) appendEntry(attempt Attempt, outcome Outcome, message string, next time.Time) {
	r.progress.Timeline = append(r.progress.Timeline, Entry{
		Stage: attempt.Stage, Step: attempt.Step, Attempt: attempt.Number,
		Began: attempt.Last, End: r.engine.clock.Now(), Outcome: outcome, Message: sanitize(message), NextRun: next,
	})
}

// report passes the result of an attempt to the Observer and the Tracer.
func (r *run[D]) report(attempt Attempt, outcome Outcome, message string) {
	r.engine.config.Observer.Attempted(r.operation.Kind, attempt.Step, outcome, r.engine.clock.Now().Sub(attempt.Last))

	end := r.endTrace
	r.endTrace = func(Outcome, string) {} // a span ends only once, and a skipped step has none
	end(outcome, sanitize(message))
}

// addEvent adds an event of the operation as a whole to the timeline.
func (r *run[D]) addEvent(outcome Outcome, message string) {
	now := r.engine.clock.Now()
	r.progress.Timeline = append(r.progress.Timeline, Entry{
		Began: now, End: now, Outcome: outcome, Message: sanitize(message),
	})
}
