package process

import (
	"context"
	"errors"
	"time"

	"github.com/environment-broker/environment-broker/internal/failure"
)

// Operation is the input and the result of a step: the stored record and the decoded data of the process. A step receives a
// copy and returns it. A step may change Data and Effect, and the fields Description and WaitingFor of the Record. The engine
// restores all other fields.
type Operation[D any] struct {
	Record

	// Data is stored with the operation whenever a stage finishes, a step waits or fails, or Save is called.
	Data D
	// Effect is nil, unless the last step of the process sets it.
	Effect Effect

	attempt Attempt
	now     time.Time
	save    func(context.Context, Operation[D]) error
	note    note
}

// Effect is a write to other tables that shows the result of an operation, such as the removal of an instance's row. The store
// executes it in the transaction in which the operation succeeds, so that no reader sees one without the other. If the operation
// does not succeed, the effect is not executed.
//
// Only the last step of a process may set an effect. An error of the effect counts as an error of that step. The engine does not
// interpret the value: the implementation of Store defines its type.
type Effect any

// note qualifies the result of a step. Await, Noted and the Retry functions set it, and the engine clears it before each attempt.
type note struct {
	message string
	// failed makes the attempt count as a failure instead of a wait.
	failed bool
	// problem has the reason and the component of the failure, if the error of the step names them.
	problem Problem
	// notCompleted makes the operation continue even though the step has not succeeded.
	notCompleted bool
}

// NewOperation returns an operation for testing a step. The step is in its first attempt, which started at now. Save does
// nothing.
func NewOperation[D any](record Record, data D, now time.Time) Operation[D] {
	return Operation[D]{Record: record, Data: data, now: now, attempt: Attempt{Number: 1, First: now, Last: now}}
}

// NewFailingOperation returns an operation for testing a step that is retried: its first attempt started at since and failed, and
// its second attempt started at now. Save does nothing.
func NewFailingOperation[D any](record Record, data D, since, now time.Time) Operation[D] {
	return Operation[D]{
		Record: record, Data: data, now: now,
		attempt: Attempt{Number: 2, First: since, Last: now, Failures: 1, FailingSince: since},
	}
}

// Attempt returns the number of this attempt, counted from 1. The count restarts when the step succeeds.
func (o Operation[D]) Attempt() int { return o.attempt.Number }

// Elapsed returns the time since the step's first attempt. A crash or a takeover does not reset it, because attempts are stored.
func (o Operation[D]) Elapsed() time.Duration { return o.now.Sub(o.attempt.First) }

// Now returns when this attempt started, by the engine's clock. Steps use it instead of the system clock, so that tests can
// control the time.
func (o Operation[D]) Now() time.Time { return o.now }

// Message returns the message of the attempt in the timeline: the error after which the step is retried or gives up, the progress
// of a wait, or the reason why there was nothing to do. It is for tests of steps.
func (o Operation[D]) Message() string { return o.note.message }

// Save stores Data and WaitingFor immediately, under the lease. Steps use it to store an intent before a call that creates
// something in an upstream. Save fails if the lease is lost or the context has ended. The step must then return the error
// without making the call.
func (o Operation[D]) Save(ctx context.Context) error {
	if o.save == nil {
		return nil
	}

	return o.save(ctx, o)
}

// Await runs the step again after the interval, or as soon as the event in WaitingFor arrives. Once the limit has passed since
// the step's first attempt, Await fails the operation with the reason failure.ReasonTimeout. why becomes the progress of the operation. It
// is for operators and may quote other systems.
//
// An event that arrives during this attempt is missed unless an earlier write has stored WaitingFor. Therefore the step that
// sends a request sets WaitingFor, and a step in the next stage waits.
func Await[D any](operation Operation[D], why string, interval, limit time.Duration) (Operation[D], time.Duration, error) {
	if err := checkInterval(interval); err != nil {
		return operation, 0, err
	}

	if operation.Elapsed() >= limit {
		return operation, 0, failure.New(failure.Permanent, "not done within %s", limit).WithReason(failure.ReasonTimeout, "").WithDetail(why)
	}

	operation.note = note{message: why}

	return operation, interval, nil
}

// Noted adds a message for operators to the timeline entry of a step that is done. The message says why the step had nothing to
// do.
func Noted[D any](operation Operation[D], message string) Operation[D] {
	operation.note = note{message: message}

	return operation
}

// RetryOperation runs the step again after the interval. The given interval and window replace the stage's RetryPolicy.
// Once the step has kept failing for the whole window, without a success or a wait in between, RetryOperation fails the operation
// with reason and err.
func RetryOperation[D any](operation Operation[D], reason string, err error, interval, window time.Duration,
) (Operation[D], time.Duration, error) {
	if err := checkInterval(interval); err != nil {
		return operation, 0, err
	}

	if operation.attempt.failingFor() >= window {
		return operation, 0, gaveUp(reason, err, window)
	}

	operation.note = failedNote(reason, err)

	return operation, interval, nil
}

// RetryOperationWithoutFail is like RetryOperation, but for an optional step. After the window, it records the step as not
// completed and continues with the next step.
func RetryOperationWithoutFail[D any](operation Operation[D], reason string, err error, interval, window time.Duration,
) (Operation[D], time.Duration, error) {
	if err := checkInterval(interval); err != nil {
		return operation, 0, err
	}

	operation.note = failedNote(reason, err)

	if operation.attempt.failingFor() >= window {
		operation.note.notCompleted = true
		interval = 0
	}

	return operation, interval, nil
}

// checkInterval rejects non-positive intervals. A step that returns the duration 0 reports success, so a miscalculated interval
// would end a wait too early.
func checkInterval(interval time.Duration) error {
	if interval <= 0 {
		return failure.New(failure.Internal, "a step asked to run again after %s, but the interval must be positive", interval).
			WithReason(failure.ReasonInternal, "")
	}

	return nil
}

// gaveUp returns the permanent error of a step whose retry window has passed. It keeps the reason and the component of the cause,
// for the problem that users see.
func gaveUp(reason string, err error, window time.Duration) error {
	ferr := failure.Of(err)

	return failure.Wrap(failure.Permanent, err, "%s: gave up after %s", describe(reason, err), window).
		WithReason(ferr.Reason, ferr.Component)
}

// failedNote returns the note for a failed attempt that will be retried.
func failedNote(reason string, err error) note {
	problem := Problem{Message: describe(reason, err)}
	if ferr, ok := errors.AsType[*failure.Error](err); ok {
		problem.Detail, problem.Reason, problem.Component = ferr.Detail, ferr.Reason, ferr.Component
	}

	return note{message: problem.ForOperators(), failed: true, problem: problem}
}

// describe joins the reason with the part of the error that users may see.
func describe(reason string, err error) string {
	if err == nil {
		return reason
	}

	text := failure.Of(err).Text
	if reason == "" {
		return text
	}

	return reason + ": " + text
}
