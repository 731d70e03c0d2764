package follow

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/environment-broker/environment-broker/internal/operatorapi"
	"github.com/environment-broker/environment-broker/process"
)

// Source returns the current state of an operation, and the time to wait before the next call, which also holds beside an error. Errors
// that have, or wrap one that has, a method Temporary returning true are retried.
type Source interface {
	Operation(ctx context.Context, id string) (operatorapi.Operation, time.Duration, error)
}

// Clock returns the time and waits.
type Clock interface {
	Now() time.Time
	After(d time.Duration) <-chan time.Time
}

// View shows the progress of an operation. Show is called at least once per interval, even if only the time has changed.
type View interface {
	Show(moment Moment)
}

// Moment is the state of a wait.
type Moment struct {
	Now time.Time
	// Operation is the last state that the source returned. Its ID is empty before that.
	Operation operatorapi.Operation
	// Trouble is the error of the last call, or nil. Next is the time of the next call.
	Trouble error
	Next    time.Time
}

// Follower waits for the end of an operation.
type Follower struct {
	Source Source
	Clock  Clock
	View   View
	// Interval is the minimum time between two calls of the source.
	Interval time.Duration
	// Limit is the maximum duration of the wait; 0 is unlimited.
	Limit time.Duration
}

// TimedOutError reports a wait that reached its limit. The operation continues.
type TimedOutError struct {
	OperationID string
	After       time.Duration
}

// Error returns the operation and the limit.
func (e *TimedOutError) Error() string {
	return fmt.Sprintf("operation %s has not ended after %s and continues", e.OperationID, e.After)
}

// EndedError reports an operation that failed or was canceled.
type EndedError struct {
	Operation operatorapi.Operation
}

// Error returns the state of the operation, its step and its problem.
func (e *EndedError) Error() string {
	text := fmt.Sprintf("operation %s %s", e.Operation.ID, e.Operation.State)

	if e.Operation.Step != "" {
		text += fmt.Sprintf(" at step %s of stage %s", e.Operation.Step, e.Operation.Stage)
	}

	if e.Operation.Problem.Message != "" {
		text += ": " + e.Operation.Problem.Message
	}

	return text
}

// Follow waits until the operation has ended. It returns an EndedError unless the operation succeeded, a TimedOutError, the context's
// error, or an error of the source that is not temporary; beside any of them, it returns the last known state of the operation.
func (f Follower) Follow(ctx context.Context, id string) (operatorapi.Operation, error) {
	start := f.Clock.Now()
	seen := Moment{Next: start}

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

// poll calls the source and updates the moment. It returns only errors that end the wait.
func (f Follower) poll(ctx context.Context, id string, seen *Moment) error {
	operation, retryAfter, err := f.Source.Operation(ctx, id)
	seen.Now = f.Clock.Now()
	seen.Next = seen.Now.Add(max(f.Interval, retryAfter))
	seen.Trouble = err

	switch {
	case err == nil:
		seen.Operation = operation
	case ctx.Err() != nil:
		return interrupted(id, ctx.Err())
	case !temporary(err):
		return fmt.Errorf("reading operation %s: %w", id, err)
	}

	return nil
}

// interrupted returns the error of a canceled wait.
func interrupted(id string, err error) error {
	return fmt.Errorf("stopped waiting for operation %s, which continues: %w", id, err)
}

// untilNext returns the time until the next call or the limit, at most an interval, so that the view shows the passing time.
func (f Follower) untilNext(seen Moment, start time.Time) time.Duration {
	wait := min(f.Interval, seen.Next.Sub(seen.Now))

	if f.Limit > 0 {
		wait = min(wait, start.Add(f.Limit).Sub(seen.Now))
	}

	return wait
}

func (f Follower) pause(ctx context.Context, wait time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-f.Clock.After(wait):
		// If both are ready, the context takes precedence.
		return ctx.Err()
	}
}

// temporary reports whether the same call may succeed later. Other errors end the wait.
func temporary(err error) bool {
	var marked interface{ Temporary() bool }

	return errors.As(err, &marked) && marked.Temporary()
}
