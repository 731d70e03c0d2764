package operator

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/sirupsen/logrus"

	"github.com/environment-broker/environment-broker/internal/audit"
	"github.com/environment-broker/environment-broker/internal/environment"
	"github.com/environment-broker/environment-broker/internal/httpserver"
	"github.com/environment-broker/environment-broker/internal/logging"
	"github.com/environment-broker/environment-broker/internal/tracing"
	"github.com/environment-broker/environment-broker/process"
	"github.com/environment-broker/environment-broker/storage"
	"github.com/environment-broker/environment-broker/storage/auditlog"
	"github.com/environment-broker/environment-broker/storage/operations"
)

// Processes knows what may be done about operations of each kind. The engine implements it.
type Processes interface {
	Handles(kind string) bool
	MaySkip(kind, step string) bool
	Successor(former process.Record, id string, at time.Time) process.New
}

// Sentences about operations that stand otherwise than an operator thinks.
const (
	textOvertaken = "Another request for the instance was faster. Look at its operations, and decide again."
	textGoneOn    = "The operation has gone on, the step is done. Look at it, and decide again."
	textSealed    = "The data of the operation cannot be opened: its key is not among APP_DATABASE_SECRET_KEYS. Add it there, then retry."
)

// intervene answers a request to do something about an operation, in one transaction, and tells of the operation afterwards. Who
// asked and why is in its timeline and in the audit trail; the log has a line in every case.
func (a *api) intervene(action, done string, do intervening) httpserver.Endpoint {
	return func(r *http.Request) (httpserver.Answer, error) {
		wanted, err := a.readIntervention(r)
		line := a.Log.WithFields(logrus.Fields{
			logging.User: wanted.by, logging.OperationID: wanted.operationID, logging.Reason: wanted.Reason,
		})

		var record process.Record
		if err == nil {
			record, err = a.carryOut(r.Context(), action, do, wanted)
		}

		if err != nil {
			line.WithError(err).Warn("audit: operation not " + done)

			return httpserver.Answer{}, err
		}

		instanceID, bindingID := worksOn(record)
		line = line.WithFields(logrus.Fields{logging.InstanceID: instanceID, logging.Kind: record.Kind})

		if bindingID != "" {
			line = line.WithField(logging.BindingID, bindingID)
		}

		if record.ID != wanted.operationID {
			line = line.WithField(logging.SuccessorID, record.ID)
		}

		line.Info("audit: operation " + done)
		httpserver.Note(r.Context(), logging.OperationID, record.ID)
		a.Wake()

		return httpserver.Answer{Status: http.StatusAccepted, Body: a.operation(record)}, nil
	}
}

// carryOut does what is wanted, and returns the operation that it concerned as it is then.
func (a *api) carryOut(ctx context.Context, action string, do intervening, wanted intervention) (process.Record, error) {
	var record process.Record

	err := a.DB.InTx(ctx, func(tx storage.Tx) error {
		former, err := a.Operations.Get(ctx, tx, wanted.operationID)
		if err != nil {
			return err
		}

		concerned, err := do(ctx, tx, wanted)
		if err != nil {
			return err
		}

		if record, err = a.Operations.Get(ctx, tx, concerned); err != nil {
			return err
		}

		return a.recordIntervention(ctx, tx, action, wanted, former, record)
	})

	switch {
	case errors.Is(err, storage.ErrNotFound):
		err = notFound(textNoOperation)
	case errors.Is(err, operations.ErrSealed):
		err = &httpserver.Refusal{Status: http.StatusConflict, Description: textSealed, Cause: err}
	case storage.IsDuplicate(err):
		err = conflict(textOvertaken)
	}

	return record, err
}

// cancelOperation has an operation end at its next safe point. What it has made stays until the instance is deleted.
func (a *api) cancelOperation(ctx context.Context, tx storage.Tx, wanted intervention) (string, error) {
	accepted, err := a.Operations.CancelOne(ctx, tx, wanted.operationID, wanted.why(), wanted.now)
	if err != nil || accepted {
		return wanted.operationID, err
	}

	record, err := a.Operations.Get(ctx, tx, wanted.operationID)
	if err == nil && record.State != process.Canceling {
		err = conflict("The operation has ended already: it is " + string(record.State) + ".")
	}

	return record.ID, err
}

// retryOperation accepts a new operation that goes on where one failed or was canceled, without the step at which that ended if
// that is named.
func (a *api) retryOperation(ctx context.Context, tx storage.Tx, wanted intervention) (string, error) {
	former, err := a.Operations.Get(ctx, tx, wanted.operationID)
	if err != nil {
		return "", err
	}

	if err := a.mayRetry(ctx, tx, former, wanted.now); err != nil {
		return "", err
	}

	if err := a.mayLeaveOut(former, wanted.Step); wanted.Step != "" && err != nil {
		return "", err
	}

	if former.Payload, err = a.Operations.Payload(ctx, tx, former.ID); err != nil {
		return "", err
	}

	next := a.Processes.Successor(former, uuid.NewString(), wanted.now)

	next.Why = "retry of " + former.ID + " " + wanted.why()
	if len(next.SkippedSteps) > 0 {
		next.Why = "retry of " + former.ID + ", again without " + strings.Join(next.SkippedSteps, ", ") + ", " + wanted.why()
	}

	by := auditlog.Entry{By: audit.ActorOf(ctx)}
	next.OrderedBy, next.Trace = by.By.Name(), tracing.Carry(ctx)

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

// mayRetry refuses what would not go on from where the operation ended. What it has found holds until the transaction ends.
func (a *api) mayRetry(ctx context.Context, tx storage.Tx, former process.Record, now time.Time) error {
	if former.State != process.Failed && former.State != process.Canceled {
		return conflict("Only an operation that failed or was canceled can be retried. This one is " + string(former.State) + ".")
	}

	if !a.Processes.Handles(former.Kind) {
		return conflict("This broker has no process any more for operations of kind " + former.Kind + ".")
	}

	present, err := a.hold(ctx, tx, former, now)
	if err != nil {
		return err
	}

	if !present {
		return conflict("The instance of the operation is gone. There is nothing to retry.")
	}

	all, err := a.Operations.OfInstance(ctx, tx, former.InstanceID)
	if err != nil {
		return err
	}

	if newest := all[0]; newest.ID != former.ID {
		return conflict(fmt.Sprintf("A later operation of the instance has taken its place: %s, a %s that is %s.",
			newest.ID, newest.Kind, newest.State))
	}

	return nil
}

// hold keeps platforms, and other operators, from accepting something else for the instance, or for its binding, meanwhile. It reports
// false when the instance is gone.
func (a *api) hold(ctx context.Context, tx storage.Tx, former process.Record, now time.Time) (bool, error) {
	if instanceID, _, is := environment.BindingOf(former.InstanceID); is {
		return a.Instances.Lock(ctx, tx, instanceID)
	}

	return a.Instances.Touch(ctx, tx, former.InstanceID, now)
}

// skipStep has the step left out with which an operation is busy.
func (a *api) skipStep(ctx context.Context, tx storage.Tx, wanted intervention) (string, error) {
	record, err := a.Operations.Get(ctx, tx, wanted.operationID)
	if err != nil {
		return "", err
	}

	if wanted.Step == "" {
		wanted.Step = record.Step
	}

	if record.State != process.InProgress {
		return "", conflict("Only a step of an operation in progress can be skipped. This one is " + string(record.State) + ".")
	}

	if err := a.mayLeaveOut(record, wanted.Step); err != nil {
		return "", err
	}

	accepted, err := a.Operations.Skip(ctx, tx, record.ID, process.Skip{Step: wanted.Step, Reason: wanted.why()}, wanted.now)
	if err == nil && !accepted {
		err = conflict(textGoneOn)
	}

	return record.ID, err
}

// mayLeaveOut refuses a step at which the operation is not, or that is needed.
func (a *api) mayLeaveOut(record process.Record, step string) error {
	switch {
	case record.Step == "":
		return conflict("The operation has not come to a step yet.")
	case step != record.Step:
		return conflict(fmt.Sprintf("The operation is not at step %q but at %q.", step, record.Step))
	case record.Finished(record.Stage):
		return conflict(textGoneOn)
	case !a.Processes.MaySkip(record.Kind, step):
		return conflict(fmt.Sprintf("Step %q cannot be left out: what follows needs what it does.", step))
	default:
		return nil
	}
}

// skippable reports whether an operator may have the step left out at which the operation is, or at which it failed or was canceled.
func (a *api) skippable(record process.Record) bool {
	standing := record.State == process.InProgress || record.State == process.Failed || record.State == process.Canceled

	return standing && a.mayLeaveOut(record, record.Step) == nil
}
