package follow

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/environment-broker/environment-broker/internal/failure"
	"github.com/environment-broker/environment-broker/internal/operatorapi"
	"github.com/environment-broker/environment-broker/process"
)

// Source reads operations. *brokerclient.Client implements it.
//
// The returned duration is the broker's Retry-After, or 0 if absent, and is valid even if the call fails. The Follower retries
// errors whose Temporary method returns true; all other errors end the wait.
type Source interface {
	Operation(ctx context.Context, id string) (operatorapi.Operation, time.Duration, error)
}

// Clock is the clock of a Follower. Tests replace it to avoid waiting.
type Clock interface {
	Now() time.Time
	After(d time.Duration) <-chan time.Time
}

// View shows the progress of an operation. Follow calls Show at least once per interval, even if the operation has not changed,
// so that the displayed ages keep increasing. All calls are made in the goroutine that called Follow.
type View interface {
	Show(moment Moment)
}

// Moment is the progress that a View shows: the last known operation and the state of the polling.
type Moment struct {
	Now time.Time
	// Noun is the word for an instance: "instance", or "runtime" for operations of a Provisioner.
	Noun string
	// Operation is the operation that the last successful call returned. Its ID is empty before the first success.
	Operation operatorapi.Operation
	// PollError is the temporary error of the last call, or nil if the call succeeded.
	PollError error
	// Next is the time of the next call.
	Next time.Time
}

// Follower waits for operations to end. All fields except Limit are required.
type Follower struct {
	Source Source
	// Noun is the word for an instance in the view: "instance" or "runtime".
	Noun  string
	Clock Clock
	View  View
	// Interval is the minimum time between two calls to the source. A longer Retry-After from the broker takes precedence.
	Interval time.Duration
	// Limit is the maximum duration of the wait. 0 means no limit.
	Limit time.Duration
}

// TimedOutError reports that the limit was reached before the operation ended. The operation continues.
type TimedOutError struct {
	OperationID string
	After       time.Duration
}

// Error returns a message with the operation and the limit.
func (e *TimedOutError) Error() string {
	return fmt.Sprintf("timed out waiting for operation %s after %s; the operation continues", e.OperationID, e.After)
}

// EndedError reports that the operation ended without success: Operation.State is failed or canceled.
type EndedError struct {
	Operation operatorapi.Operation
}

// Error returns a message with the state, the step and the problem of the operation.
func (e *EndedError) Error() string {
	text := fmt.Sprintf("operation %s %s", e.Operation.ID, e.Operation.State)

	if e.Operation.Step != "" {
		text += fmt.Sprintf(" at step %s of stage %s", e.Operation.Step, e.Operation.Stage)
	}

	if e.Operation.Problem.Message != "" {
		text += ": " + failure.WithDetail(e.Operation.Problem.Message, e.Operation.Problem.Detail)
	}

	return text
}

// Follow waits until the operation ends. It always returns the last known state of the operation. The error is nil if the
// operation succeeded, an *EndedError if it failed or was canceled, and a *TimedOutError if the limit was reached. Any other
// error wraps the context's error or an error of the source that is not temporary.
func (f Follower) Follow(ctx context.Context, id string) (operatorapi.Operation, error) {
	start := f.Clock.Now()
	seen := Moment{Next: start, Noun: f.Noun}

	for {
		seen.Now = f.Clock.Now()

		if !seen.Now.Before(seen.Next) {
			if err := f.poll(ctx, id, &seen); err != nil {
				return seen.Operation, err
			}
		}

		f.View.Show(seen)

		switch state := process.State(seen.Operation.State); {
		case state == process.Succeeded:
			return seen.Operation, nil
		case state.Terminal():
			return seen.Operation, &EndedError{Operation: seen.Operation}
		case f.Limit > 0 && seen.Now.Sub(start) >= f.Limit:
			return seen.Operation, &TimedOutError{OperationID: id, After: f.Limit}
		}

		if err := f.pause(ctx, f.untilNext(seen, start)); err != nil {
			return seen.Operation, interrupted(id, err)
		}
	}
}

// poll calls the source and updates seen. It stores temporary errors in seen and returns all other errors, which end the wait.
func (f Follower) poll(ctx context.Context, id string, seen *Moment) error {
	operation, retryAfter, err := f.Source.Operation(ctx, id)
	seen.Now = f.Clock.Now()
	seen.Next = seen.Now.Add(max(f.Interval, retryAfter))
	seen.PollError = err

	switch {
	case err == nil:
		seen.Operation = operation
	case ctx.Err() != nil:
		return interrupted(id, ctx.Err())
	case !Temporary(err):
		return fmt.Errorf("reading operation %s: %w", id, err)
	}

	return nil
}

// interrupted returns the error for a wait whose context has ended. The message says that the operation continues, because users
// could expect that Ctrl-C cancels the operation.
func interrupted(id string, err error) error {
	return fmt.Errorf("stopped waiting for operation %s, which continues: %w", id, err)
}

// untilNext returns the time until the next call or the limit, whichever is earlier. It returns at most one interval, so that the
// displayed ages keep increasing during a long Retry-After.
func (f Follower) untilNext(seen Moment, start time.Time) time.Duration {
	wait := min(f.Interval, seen.Next.Sub(seen.Now))

	if f.Limit > 0 {
		wait = min(wait, start.Add(f.Limit).Sub(seen.Now))
	}

	return wait
}

// pause waits for the given duration, or returns the context's error if the context ends first. It checks the context even after
// the timer has fired, because select chooses at random if both channels are ready.
func (f Follower) pause(ctx context.Context, wait time.Duration) error {
	select {
	case <-ctx.Done():
	case <-f.Clock.After(wait):
	}

	return ctx.Err()
}

// Temporary reports whether the same call may succeed later, for example after a restart of the broker.
func Temporary(err error) bool {
	var marked interface{ Temporary() bool }

	return errors.As(err, &marked) && marked.Temporary()
}
