package process

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode"

	"github.com/environment-broker/environment-broker/internal/failure"
)

// saveTimeout bounds a write. It has a context of its own: what was done is written even when the run was told to stop.
const saveTimeout = 10 * time.Second

// fail ends the operation with the error.
func (r *run[D]) fail(ctx context.Context, err error) {
	r.failWith(ctx, r.engine.problemOf(err))
}

// failWith ends the operation with the problem.
func (r *run[D]) failWith(ctx context.Context, problem Problem) {
	r.operation.Problem = problem
	r.finish(ctx, Failed, OperationFailed, problem.Message)
}

// finish ends the operation. One that is to be canceled ends as canceled, whatever came of it.
func (r *run[D]) finish(ctx context.Context, state State, outcome Outcome, message string) {
	now := r.engine.clock.Now()

	r.operation.State = state
	r.operation.FinishedAt = now

	if state == Canceled {
		r.operation.Description = "Canceled"
	}

	r.operation.WaitingFor, r.operation.Progress = "", ""
	r.operation.StepBegan = time.Time{}
	r.progress.Release = true
	r.note(outcome, message)

	if r.write(ctx) {
		r.engine.Ended(r.operation.Record)
	}
}

// release gives the lease back until the next run.
func (r *run[D]) release(ctx context.Context, next time.Time) {
	r.operation.NextRun = next
	r.operation.StepBegan = time.Time{}
	r.progress.Release = true
	r.write(ctx)
}

// checkpoint is Operation.Save.
func (r *run[D]) checkpoint(ctx context.Context, operation Operation[D]) error {
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("storing an intent: %w", err)
	}

	record := r.operation.Record
	record.WaitingFor = operation.WaitingFor
	r.operation.Data = operation.Data
	r.operation.Record = record

	return r.store(ctx)
}

// write stores what was done and reports whether the run may go on. A write that fails leaves the operation to whoever claims
// it next: it goes on from the last write.
func (r *run[D]) write(ctx context.Context) bool {
	err := r.store(ctx)

	switch {
	case err == nil:
		return true
	case errors.Is(err, ErrLeaseLost):
		r.engine.config.Observer.LeaseLost()
		r.log.Warn("the lease was lost, another replica goes on")
	default:
		r.log.WithError(err).Error("what was done could not be stored, it begins again once the lease is over")
	}

	return false
}

// errUncertain ends a run whose last write may or may not be stored. To write once more would tell the same lines twice; whoever
// claims the operation next reads what is true.
var errUncertain = errors.New("it is not known whether the last write was stored")

func (r *run[D]) store(ctx context.Context) error {
	if r.uncertain {
		return errUncertain
	}

	payload, err := json.Marshal(r.operation.Data)
	if err != nil {
		return fmt.Errorf("encoding the data of the operation: %w", err)
	}

	deadline, cancel := context.WithTimeout(context.WithoutCancel(ctx), saveTimeout)
	defer cancel()

	r.progress.KeepPayload = r.keepPayload || bytes.Equal(payload, r.operation.Payload)
	r.operation.Payload = payload
	r.progress.Record = r.operation.Record
	r.progress.Record.Description = presentable(r.operation.Description)
	r.progress.Record.Problem.Message = presentable(r.operation.Problem.Message)
	r.progress.Record.Progress = presentable(r.operation.Progress)
	r.progress.Now = r.engine.clock.Now()

	state, err := r.engine.store.Save(deadline, r.progress)
	if err != nil {
		r.uncertain = true

		return fmt.Errorf("storing the operation: %w", err)
	}

	r.progress = Progress{}
	r.operation.State = state

	if state == Canceling {
		r.engine.mutex.Lock()
		r.lease.canceling = true
		r.engine.mutex.Unlock()
	}

	return nil
}

// problemOf is the part of an error that is stored and shown. What names no system arose in this one.
func (e *Engine[D]) problemOf(err error) Problem {
	known := failure.Of(err)

	return Problem{Message: known.Text, Reason: known.Reason, Component: cmp.Or(known.Component, e.config.Component)}
}

// longestText bounds what is stored of a text, in characters: it may come from another system.
const longestText = 2000

// presentable is a text that any database stores and any terminal shows.
func presentable(text string) string {
	clean := strings.Map(func(char rune) rune {
		if unicode.IsControl(char) && char != '\n' && char != '\t' {
			return ' '
		}

		return char
	}, strings.ToValidUTF8(text, "?"))

	if characters := []rune(clean); len(characters) > longestText {
		return string(characters[:longestText]) + "…"
	}

	return clean
}

// timedOut is the problem of what took longer than it may.
func (e *Engine[D]) timedOut(what string, limit time.Duration) Problem {
	return Problem{
		Message:   fmt.Sprintf("%s within %s", what, limit),
		Reason:    failure.ReasonTimeout,
		Component: e.config.Component,
	}
}
