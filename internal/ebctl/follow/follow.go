package follow

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/environment-broker/environment-broker/internal/operatorapi"
	"github.com/environment-broker/environment-broker/process"
)

// Source tells where an operation stands. The duration, if any, is for how long it wants to be left alone, also beside an error.
// An error is borne when it, or one that it wraps, has a method Temporary that returns true.
type Source interface {
	Operation(ctx context.Context, id string) (operatorapi.Operation, time.Duration, error)
}

// Clock tells the time and waits.
type Clock interface {
	Now() time.Time
	After(d time.Duration) <-chan time.Time
}

// View shows how an operation goes on. It is told often, also when nothing has changed but the time.
type View interface {
	Show(moment Moment)
}

// Moment is what is known at a time.
type Moment struct {
	Now time.Time
	// Operation is as the source last told it; without an id until it first did.
	Operation operatorapi.Operation
	// Trouble is why the source did not tell the last time, or nil; Next is when it is asked again.
	Trouble error
	Next    time.Time
}

// Follower waits for operations.
type Follower struct {
	Source Source
	Clock  Clock
	View   View
	// Interval is the time between two questions, unless the source asks for more.
	Interval time.Duration
	// Limit is how long to wait; zero is for ever.
	Limit time.Duration
}

// TimedOutError is a wait that took longer than its limit. The operation goes on.
type TimedOutError struct {
	OperationID string
	After       time.Duration
}

// Error returns what was waited for, and how long.
func (e *TimedOutError) Error() string {
	return fmt.Sprintf("operation %s has not ended after %s; it goes on", e.OperationID, e.After)
}

// EndedError is an operation that ended otherwise than with success.
type EndedError struct {
	Operation operatorapi.Operation
}

// Error returns how the operation ended, and why.
func (e *EndedError) Error() string {
	text := fmt.Sprintf("operation %s %s", e.Operation.ID, e.Operation.State)

	if e.Operation.Step != "" {
		text += fmt.Sprintf(" at step %s of stage %s", e.Operation.Step, e.Operation.Stage)
	}

	if e.Operation.Problem != nil {
		text += ": " + e.Operation.Problem.Message
	}

	return text
}

// Follow returns the operation once it has ended, also beside an EndedError. It gives up with a TimedOutError, the context's error,
// or an error of the source that will not pass.
func (f Follower) Follow(ctx context.Context, id string) (operatorapi.Operation, error) {
	began := f.Clock.Now()
	seen := Moment{Next: began}

	for {
		seen.Now = f.Clock.Now()

		if !seen.Now.Before(seen.Next) {
			if err := f.ask(ctx, id, &seen); err != nil {
				return seen.Operation, err
			}
		}

		f.View.Show(seen)

		switch state := process.State(seen.Operation.State); {
		case state == process.Succeeded:
			return seen.Operation, nil
		case state.Terminal():
			return seen.Operation, &EndedError{Operation: seen.Operation}
		case f.Limit > 0 && seen.Now.Sub(began) >= f.Limit:
			return seen.Operation, &TimedOutError{OperationID: id, After: f.Limit}
		}

		if err := f.pause(ctx, f.untilNext(seen, began)); err != nil {
			return seen.Operation, stopped(id, err)
		}
	}
}

// ask puts the source's answer into the moment, and returns an error that will not pass.
func (f Follower) ask(ctx context.Context, id string, seen *Moment) error {
	operation, rest, err := f.Source.Operation(ctx, id)
	seen.Now = f.Clock.Now()
	seen.Next = seen.Now.Add(max(f.Interval, rest))
	seen.Trouble = err

	switch {
	case err == nil:
		seen.Operation = operation
	case ctx.Err() != nil:
		return stopped(id, ctx.Err())
	case !temporary(err):
		return fmt.Errorf("asking for operation %s: %w", id, err)
	}

	return nil
}

// stopped is the error of a caller who no longer wants to wait.
func stopped(id string, err error) error {
	return fmt.Errorf("no longer waiting for operation %s, which goes on: %w", id, err)
}

// untilNext is the time until there is something to do: at the latest after an interval, for the view to show that time passes.
func (f Follower) untilNext(seen Moment, began time.Time) time.Duration {
	wait := min(f.Interval, seen.Next.Sub(seen.Now))

	if f.Limit > 0 {
		wait = min(wait, began.Add(f.Limit).Sub(seen.Now))
	}

	return wait
}

func (f Follower) pause(ctx context.Context, wait time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-f.Clock.After(wait):
		// Both may be ready; then the context counts.
		return ctx.Err()
	}
}

func temporary(err error) bool {
	var passing interface{ Temporary() bool }

	return errors.As(err, &passing) && passing.Temporary()
}
