package process

import (
	"context"
	"time"

	"github.com/environment-broker/environment-broker/internal/failure"
)

// Operation is the input and the result of a step: the stored record and the decoded data of the process.
type Operation[D any] struct {
	Record

	// Data is stored with the operation whenever a stage finishes, a step waits, or Save is called.
	Data D

	attempt Attempt
	now     time.Time
	save    func(context.Context, Operation[D]) error
	note    note
}

// note is what a step reports about its return beyond the duration.
type note struct {
	message      string
	failed       bool
	notCompleted bool
}

// NewOperation returns an operation for the test of a step: its first attempt runs at the given time, and Save does nothing.
func NewOperation[D any](record Record, data D, now time.Time) Operation[D] {
	return Operation[D]{Record: record, Data: data, now: now, attempt: Attempt{Number: 1, First: now, Last: now}}
}

// Attempt returns the number of this attempt, counted from 1. The count starts over when the step succeeds.
func (o Operation[D]) Attempt() int { return o.attempt.Number }

// Elapsed returns the time since the step's first attempt.
func (o Operation[D]) Elapsed() time.Duration { return o.now.Sub(o.attempt.First) }

// Now returns when this attempt started, by the engine's clock.
func (o Operation[D]) Now() time.Time { return o.now }

// Save stores the data at once, under the lease. Steps use it to store an intent before a call that creates something outside. It
// fails when the lease is lost; the step must then return the error without making the call.
func (o Operation[D]) Save(ctx context.Context) error {
	if o.save == nil {
		return nil
	}

	return o.save(ctx, o)
}

// Await runs the step again after the interval, or as soon as the event in WaitingFor arrives. It fails the operation once the limit
// has passed since the step's first attempt. why is shown to users as the progress. To miss no event, WaitingFor must be stored by an
// earlier save.
func Await[D any](operation Operation[D], why string, interval, limit time.Duration) (Operation[D], time.Duration, error) {
	if err := checkInterval(interval); err != nil {
		return operation, 0, err
	}

	if operation.Elapsed() >= limit {
		return operation, 0, failure.New(failure.Permanent, "%s: not done within %s", why, limit).WithReason(failure.ReasonTimeout, "")
	}

	operation.note = note{message: why}

	return operation, interval, nil
}

// RetryOperation runs the step again after the interval. Once the step has failed for the window without a success in between, it
// fails the operation with the reason.
func RetryOperation[D any](operation Operation[D], reason string, err error, interval, window time.Duration,
) (Operation[D], time.Duration, error) {
	if err := checkInterval(interval); err != nil {
		return operation, 0, err
	}

	if operation.attempt.failingFor() >= window {
		return operation, 0, gaveUp(reason, err, window)
	}

	operation.note = note{message: describe(reason, err), failed: true}

	return operation, interval, nil
}

// RetryOperationWithoutFail runs the step again after the interval. Once the step has failed for the window without a success in
// between, it is recorded as not completed and the operation continues without it.
func RetryOperationWithoutFail[D any](operation Operation[D], reason string, err error, interval, window time.Duration,
) (Operation[D], time.Duration, error) {
	if err := checkInterval(interval); err != nil {
		return operation, 0, err
	}

	operation.note = note{message: describe(reason, err), failed: true}

	if operation.attempt.failingFor() >= window {
		operation.note.notCompleted = true
		interval = 0
	}

	return operation, interval, nil
}

// checkInterval rejects non-positive intervals: a step that returns one reports that it is done.
func checkInterval(interval time.Duration) error {
	if interval <= 0 {
		return failure.New(failure.Internal, "a step asks to run again after %s, which would mark it as done", interval).
			WithReason(failure.ReasonInternal, "")
	}

	return nil
}

// gaveUp returns the error of a step whose retry window has passed.
func gaveUp(reason string, err error, window time.Duration) error {
	known := failure.Of(err)

	return failure.Wrap(failure.Permanent, err, "%s: gave up after %s", describe(reason, err), window).
		WithReason(known.Reason, known.Component)
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
