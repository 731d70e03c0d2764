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

// saveTimeout bounds a write. Writes continue after the context of the run has ended, so that a stopping replica stores its
// results. The timeout may exceed the lease, because the fence rejects a late write.
const saveTimeout = 10 * time.Second

// errUncertain is the error of every write after a failed one. The database may have committed the failed write although the
// response was lost, so another write could repeat timeline entries. The run therefore writes nothing more. The lease expires,
// and the next claim reads the stored row.
var errUncertain = errors.New("an earlier write may or may not have been stored")

// fail ends the operation as failed and stores the problem described by err.
func (r *run[D]) fail(ctx context.Context, err error) {
	r.failWith(ctx, r.engine.problemOf(err))
}

// failWith ends the operation as failed and stores the problem.
func (r *run[D]) failWith(ctx context.Context, problem Problem) {
	r.operation.Problem = problem
	r.finish(ctx, Failed, OperationFailed, problem.ForOperators())
}

// finish ends the operation. Only the run whose write succeeds reports the end, so observers never count an operation twice.
func (r *run[D]) finish(ctx context.Context, state State, outcome Outcome, message string) {
	r.end(state, outcome, message)

	if r.write(ctx) {
		r.engine.Ended(r.operation.Record)
	}
}

// end records the end of the operation for the next write. If the operation is being canceled, the store changes its state to
// canceled, whatever the result.
func (r *run[D]) end(state State, outcome Outcome, message string) {
	now := r.engine.clock.Now()

	r.operation.State = state
	r.operation.FinishedAt = now

	switch state {
	case Canceled:
		r.operation.Description = "Canceled"
	case Succeeded:
		r.operation.Description = cmp.Or(r.engine.processes[r.operation.Kind].Succeeded, r.operation.Description)
	default: // the operation keeps its description
	}

	r.operation.WaitingFor, r.operation.Progress = "", ""
	r.operation.StepBegan = time.Time{}
	r.progress.Release = true
	r.addEvent(outcome, message)
}

// release releases the lease. The operation is due again at next.
func (r *run[D]) release(ctx context.Context, next time.Time) {
	r.operation.NextRun = next
	r.operation.StepBegan = time.Time{}
	r.progress.Release = true
	r.write(ctx)
}

// checkpoint implements Operation.Save. It stores Data and WaitingFor with the values that the step has set. It ignores changes
// to other fields of the record.
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

// write stores the progress and reports whether the run may continue. After a failed write, the next claim resumes from the
// stored row.
func (r *run[D]) write(ctx context.Context) bool { return r.stored(r.store(ctx)) }

// stored reports whether a write succeeded. If not, it logs the error.
func (r *run[D]) stored(err error) bool {
	switch {
	case err == nil:
		return true
	case errors.Is(err, ErrLeaseLost):
		r.engine.config.Observer.LeaseLost()
		r.log.Warn("lease lost: another replica continues the operation")
	default:
		r.log.WithError(err).Error("storing progress failed; the operation resumes when its lease expires")
	}

	return false
}

// store writes the progress under the lease, and adopts the state that the store returns: a cancellation may have arrived since
// the last renewal. It omits an unchanged payload, because the payload is the largest column and must be encrypted.
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
	r.progress.Record.Description = sanitize(r.operation.Description)
	r.progress.Record.Problem.Message = sanitize(r.operation.Problem.Message)
	r.progress.Record.Problem.Detail = sanitize(r.operation.Problem.Detail)
	r.progress.Record.Progress = sanitize(r.operation.Progress)
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

// problemOf returns the part of an error that is stored as the operation's problem. If the error names no component, the problem
// gets the component of this service.
func (e *Engine[D]) problemOf(err error) Problem {
	ferr := failure.Of(err)

	return Problem{Message: ferr.Text, Detail: ferr.Detail, Reason: ferr.Reason, Component: cmp.Or(ferr.Component, e.config.Component)}
}

// timedOut returns the problem of an operation that exceeded a time limit. missed is the beginning of the message, a clause such
// as "the operation did not start".
func (e *Engine[D]) timedOut(missed string, limit time.Duration) Problem {
	return Problem{
		Message:   fmt.Sprintf("%s within %s", missed, limit),
		Reason:    failure.ReasonTimeout,
		Component: e.config.Component,
	}
}

// maxText bounds stored messages, in characters. Error messages may come from other systems and can have any size.
const maxText = 2000

// sanitize replaces invalid UTF-8 and control characters and truncates the text to maxText, so that every database can store it
// and every terminal can show it.
func sanitize(text string) string {
	clean := strings.Map(func(char rune) rune {
		if unicode.IsControl(char) && char != '\n' && char != '\t' {
			return ' '
		}

		return char
	}, strings.ToValidUTF8(text, "?"))

	if characters := []rune(clean); len(characters) > maxText {
		return string(characters[:maxText]) + "…"
	}

	return clean
}
