package process

import (
	"context"
	"time"

	"github.com/environment-broker/environment-broker/internal/failure"
)

// Operation is what a step gets and gives back: the stored record and the data of the process, decoded.
type Operation[D any] struct {
	Record

	// Data is stored with the operation whenever a stage finishes, a step waits, or Save is called.
	Data D

	attempt Attempt
	now     time.Time
	save    func(context.Context, Operation[D]) error
	note    note
}

// note is what a step said about its return besides the duration.
type note struct {
	message      string
	failed       bool
	notCompleted bool
}

// NewOperation returns an operation for the test of a step: it runs for the first time, at the given moment, and Save does nothing.
func NewOperation[D any](record Record, data D, now time.Time) Operation[D] {
	return Operation[D]{Record: record, Data: data, now: now, attempt: Attempt{Number: 1, First: now, Last: now}}
}

// Attempt tells which run of the step this is since it last succeeded, counted from 1.
func (o Operation[D]) Attempt() int { return o.attempt.Number }

// failing counts this run as failed, the first of its row or one more.
func (a Attempt) failing() Attempt {
	if a.Failures == 0 {
		a.FailingSince = a.Last
	}

	a.Failures++

	return a
}

// failingFor is the time since the first failure of the row that this run would continue.
func (a Attempt) failingFor() time.Duration { return a.Last.Sub(a.failing().FailingSince) }

// Elapsed is the time since the step's first run.
func (o Operation[D]) Elapsed() time.Duration { return o.now.Sub(o.attempt.First) }

// Now is when this run of the step began, by the engine's clock.
func (o Operation[D]) Now() time.Time { return o.now }

// Save stores the data at once, under the lease: an intent, before a call that makes something outside. It fails when the
// lease was lost; the step has to return the error and not make the call.
func (o Operation[D]) Save(ctx context.Context) error {
	if o.save == nil {
		return nil
	}

	return o.save(ctx, o)
}

// Await has the step run again after the interval, or as soon as the event of WaitingFor happens, until the limit since its first
// run has passed. Then the operation fails. The line tells people what it waits for. So that no event is missed, an earlier
// save has to have stored WaitingFor.
func Await[D any](operation Operation[D], why string, interval, limit time.Duration) (Operation[D], time.Duration, error) {
	if err := later(interval); err != nil {
		return operation, 0, err
	}

	if operation.Elapsed() >= limit {
		return operation, 0, failure.New(failure.Permanent, "%s: not done within %s", why, limit).WithReason(failure.ReasonTimeout, "")
	}

	operation.note = note{message: why}

	return operation, interval, nil
}

// RetryOperation has the step run again after the interval, until it has failed for the window without success in between. Then
// the operation fails with the reason.
func RetryOperation[D any](operation Operation[D], reason string, err error, interval, window time.Duration,
) (Operation[D], time.Duration, error) {
	if err := later(interval); err != nil {
		return operation, 0, err
	}

	if operation.attempt.failingFor() >= window {
		return operation, 0, gaveUp(reason, err, window)
	}

	operation.note = note{message: describe(reason, err), failed: true}

	return operation, interval, nil
}

// RetryOperationWithoutFail has the step run again after the interval, until it has failed for the window without success in
// between. Then the step is recorded as not completed, is not run again, and the operation goes on without it.
func RetryOperationWithoutFail[D any](operation Operation[D], reason string, err error, interval, window time.Duration,
) (Operation[D], time.Duration, error) {
	if err := later(interval); err != nil {
		return operation, 0, err
	}

	operation.note = note{message: describe(reason, err), failed: true}

	if operation.attempt.failingFor() >= window {
		operation.note.notCompleted = true
		interval = 0
	}

	return operation, interval, nil
}

// later fails for a pause that is none: a step that returns it says that it is done.
func later(interval time.Duration) error {
	if interval <= 0 {
		return failure.New(failure.Internal, "a step is to run again after %s, which would mean that it is done", interval).
			WithReason(failure.ReasonInternal, "")
	}

	return nil
}

// gaveUp makes the error of a step whose window has passed.
func gaveUp(reason string, err error, window time.Duration) error {
	known := failure.Of(err)

	return failure.Wrap(failure.Permanent, err, "%s: gave up after %s", describe(reason, err), window).
		WithReason(known.Reason, known.Component)
}

// describe joins what was being done with the part of the error that people may read.
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
