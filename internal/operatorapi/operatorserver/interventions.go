package operatorserver

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/environment-broker/environment-broker/internal/audit"
	"github.com/environment-broker/environment-broker/internal/httpserver"
	"github.com/environment-broker/environment-broker/internal/operatorapi"
	"github.com/environment-broker/environment-broker/internal/tracing"
	"github.com/environment-broker/environment-broker/process"
	"github.com/environment-broker/environment-broker/storage"
	"github.com/environment-broker/environment-broker/storage/auditlog"
)

// The words that complete the log messages "operation …" and "operation not …" about interventions.
const (
	DoneCancel = "canceled"
	doneRetry  = "retried"
	doneSkip   = "continued without a step"
)

const textStepDone = "The operation has finished the step. Check the operation, then repeat the request if it is still needed."

// CancelOperation handles POST /operations/{operation_id}/cancel. It is idempotent while the operation is being
// canceled.
func (a *API) CancelOperation(r *http.Request) (httpserver.Response, error) {
	return a.Intervene(r, DoneCancel, a.Cancel)
}

// Cancel requests the cancellation of an operation, and returns the operation.
func (a *API) Cancel(ctx context.Context, operationID string, wanted operatorapi.Intervention) (operatorapi.Operation, error) {
	return a.intervene(ctx, operationID, wanted, auditlog.ActionCancel, DoneCancel, a.cancel)
}

// RetryOperation handles POST /operations/{operation_id}/retry. The response contains the new operation.
func (a *API) RetryOperation(r *http.Request) (httpserver.Response, error) {
	return a.Intervene(r, doneRetry, a.Retry)
}

// Retry retries an ended operation, and returns the new operation.
func (a *API) Retry(ctx context.Context, operationID string, wanted operatorapi.Intervention) (operatorapi.Operation, error) {
	return a.intervene(ctx, operationID, wanted, auditlog.ActionRetry, doneRetry, a.retry)
}

// SkipStep handles POST /operations/{operation_id}/skip. If an attempt of the step is running, it finishes first.
func (a *API) SkipStep(r *http.Request) (httpserver.Response, error) {
	return a.Intervene(r, doneSkip, a.Skip)
}

// Skip makes an operation continue without its current step, and returns the operation.
func (a *API) Skip(ctx context.Context, operationID string, wanted operatorapi.Intervention) (operatorapi.Operation, error) {
	return a.intervene(ctx, operationID, wanted, auditlog.ActionSkip, doneSkip, a.skip)
}

// cancel requests that the operation end at its next safe point. A pending operation ends immediately. Resources
// that the operation has created remain until the instance is deleted. The error is a conflict if the operation has
// already ended.
func (a *API) cancel(ctx context.Context, tx storage.Tx, wanted intervention) (string, error) {
	if wanted.Step != "" {
		return "", Invalid("step is only allowed for a skip or a retry.")
	}

	accepted, err := a.Operations.CancelOne(ctx, tx, wanted.operationID, wanted.why(), wanted.now)
	if err != nil || accepted {
		return wanted.operationID, err
	}

	record, err := a.Operations.Get(ctx, tx, wanted.operationID)
	if err == nil && record.State != process.Canceling {
		err = Conflict("The operation has already ended: it is " + string(record.State) + ".")
	}

	return record.ID, err
}

// retry accepts a new operation that continues a failed or canceled one with its data, as Subjects.Refresh returns it. If the
// request names the step at which the original operation ended, the new operation skips this step. It also skips the steps that
// the original operation skipped.
func (a *API) retry(ctx context.Context, tx storage.Tx, wanted intervention) (string, error) {
	former, err := a.Operations.Get(ctx, tx, wanted.operationID)
	if err != nil {
		return "", err
	}

	if err := a.checkRetry(ctx, tx, former, wanted.now); err != nil {
		return "", err
	}

	if err := a.checkSkip(former, wanted.Step); wanted.Step != "" && err != nil {
		return "", err
	}

	if former.Payload, err = a.Operations.Payload(ctx, tx, former.ID); err != nil {
		return "", err
	}

	next, err := a.Subjects.Refresh(ctx, tx, a.Engine.Successor(former, uuid.NewString(), wanted.now))
	if err != nil {
		return "", err
	}

	next.Why = "retry of " + former.ID + " " + wanted.why()
	if len(next.SkippedSteps) > 0 {
		next.Why = "retry of " + former.ID + ", again without " + strings.Join(next.SkippedSteps, ", ") + ", " + wanted.why()
	}

	by := auditlog.Entry{By: audit.ActorOf(ctx)}
	next.OrderedBy, next.Trace = by.By.Name(), tracing.Traceparent(ctx)

	if next.Audit, err = by.Encode(); err != nil {
		return "", err
	}

	if err := a.Operations.Accept(ctx, tx, next); err != nil {
		return "", err
	}

	if wanted.Step != "" && !slices.Contains(next.SkippedSteps, wanted.Step) {
		skip := process.Skip{Step: wanted.Step, Reason: wanted.why()}
		if _, err := a.Operations.Skip(ctx, tx, next.ID, skip, wanted.now); err != nil {
			return "", err
		}
	}

	return next.ID, a.Operations.RecordRetry(ctx, tx, former.ID, "as "+next.ID+" "+wanted.why(), wanted.now)
}

// checkRetry rejects an operation that has neither failed nor been canceled, and an operation whose instance no
// longer exists or has a later operation. It locks the instance, so its result remains valid until the transaction
// ends.
func (a *API) checkRetry(ctx context.Context, tx storage.Tx, former process.Record, now time.Time) error {
	if former.State != process.Failed && former.State != process.Canceled {
		return Conflict("Only a failed or canceled operation can be retried. The state of this one is " + string(former.State) + ".")
	}

	if !a.Engine.Handles(former.Kind) {
		return Conflict("This version no longer supports operations of kind " + former.Kind + ".")
	}

	exists, err := a.Subjects.Lock(ctx, tx, former, now)
	if err != nil {
		return err
	}

	if !exists {
		return Conflict(fmt.Sprintf("The %s of the operation no longer exists, so there is nothing to retry.", a.Subjects.Noun()))
	}

	newest, err := a.newest(ctx, tx, former)
	if err != nil {
		return err
	}

	if newest.ID != former.ID {
		return Conflict(fmt.Sprintf("A later operation exists for this %s: %s, of kind %q, %s.",
			a.Subjects.Noun(), newest.ID, newest.Kind, newest.State))
	}

	return nil
}

// skip requests that the operation continue without its current step. If the request names a step and the operation
// has already moved on to another one, the request is rejected.
func (a *API) skip(ctx context.Context, tx storage.Tx, wanted intervention) (string, error) {
	record, err := a.Operations.Get(ctx, tx, wanted.operationID)
	if err != nil {
		return "", err
	}

	if wanted.Step == "" {
		wanted.Step = record.Step
	}

	if record.State != process.InProgress {
		return "", Conflict("A step can be skipped only while the operation is in progress. The state of this operation is " + string(record.State) + ".")
	}

	if err := a.checkSkip(record, wanted.Step); err != nil {
		return "", err
	}

	accepted, err := a.Operations.Skip(ctx, tx, record.ID, process.Skip{Step: wanted.Step, Reason: wanted.why()}, wanted.now)
	if err == nil && !accepted {
		err = Conflict(textStepDone)
	}

	return record.ID, err
}

// checkSkip rejects a step that is finished or is not the current one, and a step on which later steps depend.
func (a *API) checkSkip(record process.Record, step string) error {
	switch {
	case record.Step == "":
		return Conflict("The operation has not started a step yet.")
	case step != record.Step:
		return Conflict(fmt.Sprintf("The operation is at step %q, not at %q.", record.Step, step))
	case record.Finished(record.Stage):
		return Conflict(textStepDone)
	case !a.Engine.MaySkip(record.Kind, step):
		return Conflict(fmt.Sprintf("Step %q cannot be skipped: later steps depend on it.", step))
	default:
		return nil
	}
}

// skippable reports whether the current step can be skipped by a skip request or, if the operation has failed, by a retry
// request.
func (a *API) skippable(record process.Record) bool {
	eligible := record.State == process.InProgress || record.State == process.Failed || record.State == process.Canceled

	return eligible && a.checkSkip(record, record.Step) == nil
}
