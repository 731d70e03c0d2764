package operatorserver

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/sirupsen/logrus"

	"github.com/environment-broker/environment-broker/internal/auth"
	"github.com/environment-broker/environment-broker/internal/httpserver"
	"github.com/environment-broker/environment-broker/internal/httpserver/bounds"
	"github.com/environment-broker/environment-broker/internal/logging"
	"github.com/environment-broker/environment-broker/internal/operatorapi"
	"github.com/environment-broker/environment-broker/process"
	"github.com/environment-broker/environment-broker/storage"
	"github.com/environment-broker/environment-broker/storage/auditlog"
	"github.com/environment-broker/environment-broker/storage/operations"
)

const (
	// maxReason is the maximum length of the reason for an intervention, in characters.
	maxReason = 500
	// Anonymous is the name of operators in logs and timelines if the service requires no authentication.
	Anonymous = "somebody"

	textNoOperation  = "The operation does not exist, or was removed because its retention period (APP_AUDIT_RETENTION) has ended."
	textIntervention = `The body is invalid. Send {"reason": "…"} as JSON. A skip or a retry can also have a "step" field.`
	textOvertaken    = "Another request for the %[1]s was accepted first. Check the operations of the %[1]s, then repeat this request if it is still needed."
	textSealed       = "The data of the operation cannot be decrypted, because APP_DATABASE_SECRET_KEYS does not contain the key. Add the key, then retry."
)

// intervention is a request to cancel an operation, to retry it, or to skip its current step.
type intervention struct {
	operatorapi.Intervention

	operationID string
	// by is the name of the user who sent the request.
	by string
	// now is the time of the request. All rows that the intervention writes have this time.
	now time.Time
}

// why returns the text for the timeline: the user and the reason.
func (i intervention) why() string { return "by " + i.by + ": " + i.Reason }

// action carries out an intervention inside the transaction. It returns the ID of the operation to show; after a
// retry, this is the new operation. If it returns an error, the transaction is rolled back.
type action func(ctx context.Context, tx storage.Tx, wanted intervention) (operationID string, err error)

// intervene carries out the action in one transaction, and returns the resulting operation. The timeline and the audit log show
// the user and the reason. Accepted and rejected requests are logged. done completes the log message "operation …", as in
// "operation canceled".
func (a *API) intervene(ctx context.Context, operationID string, requested operatorapi.Intervention, name, done string, do action,
) (operatorapi.Operation, error) {
	wanted := intervention{
		Intervention: requested, operationID: operationID, by: cmp.Or(auth.FromContext(ctx).Name, Anonymous), now: a.Clock.Now(),
	}

	var err error

	wanted.Reason, err = CheckReason(wanted.Reason)
	line := a.Log.WithFields(logrus.Fields{
		logging.User: wanted.by, logging.OperationID: wanted.operationID, logging.Reason: wanted.Reason,
	})

	var record process.Record
	if err == nil {
		record, err = a.carryOut(ctx, name, do, wanted)
	}

	if err != nil {
		line.WithError(err).Warn("audit: operation not " + done)

		return operatorapi.Operation{}, err
	}

	instanceID, bindingID := a.Subjects.IDs(record)
	line = line.WithFields(logrus.Fields{logging.InstanceID: instanceID, logging.Kind: record.Kind})

	if bindingID != "" {
		line = line.WithField(logging.BindingID, bindingID)
	}

	if record.ID != wanted.operationID {
		line = line.WithField(logging.SuccessorID, record.ID)
	}

	line.Info("audit: operation " + done)
	httpserver.Note(ctx, logging.OperationID, record.ID)
	a.Wake()

	return a.Operation(record), nil
}

// Intervene decodes a request for an intervention and passes it to the do function, which returns the resulting operation. It
// logs requests that it cannot decode. done completes the log message, as in intervene.
func (a *API) Intervene(r *http.Request, done string,
	do func(ctx context.Context, operationID string, wanted operatorapi.Intervention) (operatorapi.Operation, error),
) (httpserver.Response, error) {
	var wanted operatorapi.Intervention

	operationID, err := Segment(r, "operation_id")
	if err == nil {
		err = ReadStrictly(r.Body, &wanted, textIntervention)
	}

	if err != nil {
		a.Log.WithFields(logrus.Fields{
			logging.User: cmp.Or(auth.FromContext(r.Context()).Name, Anonymous), logging.OperationID: operationID, logging.Reason: oneLine(wanted.Reason),
		}).WithError(err).Warn("audit: operation not " + done)

		return httpserver.Response{}, err
	}

	shown, err := do(r.Context(), operationID, wanted)

	return httpserver.Response{Status: http.StatusAccepted, Body: shown}, err
}

// carryOut runs the action and writes the audit log in one transaction, and returns the operation to show. It converts the errors
// of the stores to responses. If a store reports a duplicate, a concurrent request was accepted after the action had read the
// operations of the instance.
func (a *API) carryOut(ctx context.Context, name string, do action, wanted intervention) (process.Record, error) {
	var record process.Record

	err := a.DB.InTx(ctx, func(tx storage.Tx) error {
		former, err := a.Operations.Get(ctx, tx, wanted.operationID)
		if err != nil {
			return err
		}

		operationID, err := do(ctx, tx, wanted)
		if err != nil {
			return err
		}

		if record, err = a.Operations.Get(ctx, tx, operationID); err != nil {
			return err
		}

		return a.recordIntervention(ctx, tx, name, wanted, former, record)
	})

	switch {
	case errors.Is(err, storage.ErrNotFound):
		err = NotFound(textNoOperation)
	case errors.Is(err, operations.ErrSealed):
		err = &httpserver.Refusal{Status: http.StatusConflict, Description: textSealed, Cause: err}
	case storage.IsDuplicate(err):
		err = Conflict(fmt.Sprintf(textOvertaken, a.Subjects.Noun()))
	}

	return record, err
}

// recordIntervention writes the intervention to the audit log. former is the operation before the intervention. record is the
// operation afterward, which is a new operation after a retry.
func (a *API) recordIntervention(ctx context.Context, tx storage.Tx, name string, wanted intervention, former, record process.Record) error {
	instanceID, bindingID := a.Subjects.IDs(former)
	entry := auditlog.Entry{
		Action: name, InstanceID: instanceID, BindingID: bindingID, OperationID: former.ID, Status: http.StatusAccepted, Reason: wanted.Reason,
		Before: auditlog.Fields{"kind": former.Kind, "state": former.State}, //nolint:goconst // the query parameters have this name by chance
		After:  auditlog.Fields{"kind": former.Kind, "state": record.State},
	}

	if wanted.Step != "" {
		entry.After["step"] = wanted.Step
	}

	if record.ID != former.ID {
		entry.After["successorID"] = record.ID
	}

	return a.Recorder.Record(ctx, tx, entry)
}

// CheckReason returns the reason as one line. If the reason is missing or too long, CheckReason returns an error and, for the
// log, the shortened reason.
func CheckReason(reason string) (string, error) {
	reason = oneLine(reason)

	switch length := utf8.RuneCountInString(reason); {
	case length == 0:
		return "", Invalid("reason is missing. Give a reason that others will understand.")
	case length > maxReason:
		return string([]rune(reason)[:maxReason]) + "…", Invalid(fmt.Sprintf("reason has %d characters. At most %d are allowed.", length, maxReason))
	default:
		return reason, nil
	}
}

// ReadStrictly decodes a body that contains one JSON object or is empty. It rejects unknown fields: if a field name were
// misspelled, the request would have an effect that the operator did not intend. text describes a valid body and becomes the
// description of the rejection.
func ReadStrictly(body io.Reader, into any, text string) error {
	content, err := io.ReadAll(body)
	if err != nil {
		if _, tooLarge := errors.AsType[*http.MaxBytesError](err); tooLarge {
			return err
		}

		return Invalid(text)
	}

	if len(bytes.TrimSpace(content)) == 0 {
		return nil
	}

	if err := bounds.JSON("The body", content); err != nil {
		return Invalid(err.Error() + ".")
	}

	decoder := json.NewDecoder(bytes.NewReader(content))
	decoder.DisallowUnknownFields()

	if err := decoder.Decode(into); err == nil {
		if _, err = decoder.Token(); errors.Is(err, io.EOF) {
			return nil
		}
	}

	return Invalid(text)
}

// oneLine replaces line breaks and unprintable characters with single spaces.
func oneLine(text string) string {
	return strings.Join(strings.FieldsFunc(text, func(char rune) bool {
		return unicode.IsSpace(char) || !unicode.IsGraphic(char)
	}), " ")
}
