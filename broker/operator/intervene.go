package operator

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/google/uuid"
	"github.com/sirupsen/logrus"

	"github.com/environment-broker/environment-broker/internal/auth"
	"github.com/environment-broker/environment-broker/internal/logging"
	"github.com/environment-broker/environment-broker/internal/operatorapi"
	"github.com/environment-broker/environment-broker/internal/rest"
	"github.com/environment-broker/environment-broker/process"
	"github.com/environment-broker/environment-broker/storage"
)

// Processes knows what may be done about operations of each kind. The engine implements it.
type Processes interface {
	MaySkip(kind, step string) bool
	Successor(former process.Record, id string, at time.Time) process.New
}

const (
	// longestReason is how long the reason for an intervention may be, in characters.
	longestReason = 500
	// nobody stands for the operator of a broker without users.
	nobody = "somebody"
)

// intervention is what an operator wants of an operation.
type intervention struct {
	operatorapi.Intervention

	operationID string
	by          string
	now         time.Time
}

// why is the line that the timeline keeps.
func (i intervention) why() string { return "by " + i.by + ": " + i.Reason }

// intervene answers a request to do something about an operation, in one transaction, and tells of the operation afterwards. Who
// asked and why is in its timeline; the log has a line in every case.
func (a *api) intervene(what string, do func(context.Context, storage.Tx, intervention) (concerned string, err error)) rest.Endpoint {
	return func(r *http.Request) (rest.Answer, error) {
		wanted, err := a.readIntervention(r)
		audit := a.Log.WithFields(logrus.Fields{
			logging.User: wanted.by, logging.OperationID: wanted.operationID, logging.Reason: wanted.Reason,
		})

		var record process.Record

		if err == nil {
			err = a.DB.InTx(r.Context(), func(tx storage.Tx) error {
				concerned, err := do(r.Context(), tx, wanted)
				if err != nil {
					return err
				}

				record, err = a.Operations.Get(r.Context(), tx, concerned)

				return err
			})
		}

		switch {
		case errors.Is(err, storage.ErrNotFound):
			err = notFound(textNoOperation)
		case storage.IsDuplicate(err):
			err = conflict("Another request for the instance was faster. Look at its operations, and decide again.")
		}

		if err != nil {
			audit.WithError(err).Warn("audit: operation not " + what)

			return rest.Answer{}, err
		}

		audit.Info("audit: operation " + what)
		rest.Note(r.Context(), logging.OperationID, record.ID)
		a.Wake()

		return rest.Answer{Status: http.StatusAccepted, Body: a.operation(record)}, nil
	}
}

func (a *api) readIntervention(r *http.Request) (intervention, error) {
	wanted := intervention{by: auth.FromContext(r.Context()).Name, now: a.Clock.Now()}
	if wanted.by == "" {
		wanted.by = nobody
	}

	var err error
	if wanted.operationID, err = segment(r, "operation_id"); err != nil {
		return wanted, err
	}

	decoder := json.NewDecoder(r.Body)
	decoder.DisallowUnknownFields()

	if err := decoder.Decode(&wanted.Intervention); err != nil && !errors.Is(err, io.EOF) {
		return wanted, invalid(`The body cannot be read. Send {"reason": "…"} as JSON, for a skip with "step" beside it.`)
	}

	wanted.Reason = strings.TrimSpace(wanted.Reason)
	if wanted.Reason == "" || utf8.RuneCountInString(wanted.Reason) > longestReason {
		return wanted, invalid(fmt.Sprintf("reason is missing or longer than %d characters: say why, others will read it.", longestReason))
	}

	return wanted, nil
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

// retryOperation accepts a new operation that goes on where one failed or was canceled.
func (a *api) retryOperation(ctx context.Context, tx storage.Tx, wanted intervention) (string, error) {
	former, err := a.Operations.Get(ctx, tx, wanted.operationID)
	if err != nil {
		return "", err
	}

	if former.State != process.Failed && former.State != process.Canceled {
		return "", conflict("Only an operation that failed or was canceled can be retried. This one is " + string(former.State) + ".")
	}

	// Who touches the instance keeps platforms from accepting something else for it meanwhile.
	present, err := a.Instances.Touch(ctx, tx, former.InstanceID, wanted.now)
	if err != nil {
		return "", err
	}

	if !present {
		return "", conflict("The instance of the operation is gone. There is nothing to retry.")
	}

	all, err := a.Operations.OfInstance(ctx, tx, former.InstanceID)
	if err != nil {
		return "", err
	}

	if newest := all[0]; newest.ID != former.ID {
		return "", conflict(fmt.Sprintf("A later operation of the instance has taken its place: %s, a %s that is %s.",
			newest.ID, newest.Kind, newest.State))
	}

	if former.Payload, err = a.Operations.Payload(ctx, tx, former.ID); err != nil {
		return "", err
	}

	next := a.Processes.Successor(former, uuid.NewString(), wanted.now)
	next.Why = "retry of " + former.ID + " " + wanted.why()
	_, err = a.Operations.Accept(ctx, tx, next)

	return next.ID, err
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

	switch {
	case record.State != process.InProgress:
		return "", conflict("Only a step of an operation in progress can be skipped. This one is " + string(record.State) + ".")
	case wanted.Step != record.Step:
		return "", conflict(fmt.Sprintf("The operation is not at step %q but at %q.", wanted.Step, record.Step))
	case !a.Processes.MaySkip(record.Kind, record.Step):
		return "", conflict(fmt.Sprintf("Step %q cannot be skipped: what follows needs what it does. Cancel the operation instead.", record.Step))
	}

	accepted, err := a.Operations.Skip(ctx, tx, record.ID, process.Skip{Step: wanted.Step, Reason: wanted.why()}, wanted.now)
	if err == nil && !accepted {
		err = conflict("The operation has gone on at this moment. Look at it, and decide again.")
	}

	return record.ID, err
}
