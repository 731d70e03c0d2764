package operator

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/environment-broker/environment-broker/internal/auth"
	"github.com/environment-broker/environment-broker/internal/environment"
	"github.com/environment-broker/environment-broker/internal/httpserver"
	"github.com/environment-broker/environment-broker/internal/logging"
	"github.com/environment-broker/environment-broker/internal/operatorapi"
	"github.com/environment-broker/environment-broker/internal/operatorapi/operatorserver"
	"github.com/environment-broker/environment-broker/storage"
	"github.com/environment-broker/environment-broker/storage/instances"
	"github.com/environment-broker/environment-broker/storage/leftovers"
	"github.com/environment-broker/environment-broker/storage/operations"
)

const (
	textJustification = `The body is invalid. Send {"reason": "…"} as JSON.`
	textSealed        = "The deletion's data cannot be decrypted, because the key is not in APP_DATABASE_SECRET_KEYS. Add the key, then repeat the request."
)

// Cleaner cleans up leftovers. Errors come from the database or carry a failure.Kind.
type Cleaner interface {
	// Clean starts a cleanup, or returns the running one.
	Clean(ctx context.Context, leftoverID, reason string) (cleanupID string, err error)
	// Confirm removes a leftover from the list without a cleanup. It returns the leftover with its objects.
	Confirm(ctx context.Context, leftoverID, reason string) (environment.Leftover, []environment.OutsideObject, error)
}

// listLeftovers returns a page of leftovers, newest first. It rejects parameters of the runtime list that do not apply to
// leftovers, such as state, labels and sort.
func (a *API) listLeftovers(ctx context.Context, query operatorserver.Query, filter instances.Filter) (operatorapi.RuntimeList, error) {
	for _, name := range append(columnFilters(), "state", "labels", "protected", "search", "anywhere", "sort") {
		if query.Get(name) != "" {
			return operatorapi.RuntimeList{}, operatorserver.Invalid("leftovers and " + name + " cannot be combined.")
		}
	}

	objects := map[string][]operatorapi.OutsideObject{}

	read := func(ctx context.Context, filter leftovers.Filter) ([]leftovers.Listed, error) {
		listed, err := a.Leftovers.List(ctx, filter)
		if err != nil {
			return nil, err
		}

		keys := make([]string, 0, len(listed))
		for _, each := range listed {
			keys = append(keys, each.Leftover.Key())
		}

		found, err := a.Objects.OfInstances(ctx, keys)
		for _, object := range found {
			objects[object.InstanceID] = append(objects[object.InstanceID], shownObject(object))
		}

		return listed, err
	}

	show := func(listed leftovers.Listed) operatorapi.Runtime {
		return a.leftover(listed, objects[listed.Leftover.Key()])
	}

	var (
		list operatorapi.RuntimeList
		err  error
	)

	list.Data, list.Page, err = operatorserver.ReadList(ctx, query.Page, leftovers.Filter{
		InstanceID: filter.InstanceID, Name: filter.Name, GlobalAccountID: filter.GlobalAccountID, SubAccountID: filter.SubAccountID,
		Region: filter.Region, Platform: filter.Platform, Plan: filter.Plan,
		Before: filter.Before, BeforeID: filter.BeforeID, Offset: filter.Offset, Limit: filter.Limit,
	}, read, a.Leftovers.Count, show, func(shown operatorapi.Runtime) (time.Time, string) { return shown.Status.DeletedAt, shown.Leftover.ID })

	return list, err
}

// leftover converts a leftover and its newest operation to an operatorapi.Runtime.
func (a *API) leftover(listed leftovers.Listed, objects []operatorapi.OutsideObject) operatorapi.Runtime {
	shown := a.runtime(instances.Listed{Instance: listed.Leftover.Instance, Operation: listed.Operation})

	shown.Status.State, shown.Status.DeletedAt = operatorapi.RuntimeStateDeleted, listed.Leftover.DeletedAt
	shown.Leftover = shownLeftover(listed.Leftover, objects)

	return shown
}

func shownLeftover(leftover environment.Leftover, objects []operatorapi.OutsideObject) operatorapi.Leftover {
	if objects == nil {
		objects = []operatorapi.OutsideObject{}
	}

	return operatorapi.Leftover{ID: leftover.ID, Kind: leftover.Kind, Steps: leftover.Steps, Objects: objects, RetryAt: leftover.RetryAt}
}

func shownObject(object environment.OutsideObject) operatorapi.OutsideObject {
	return operatorapi.OutsideObject{
		System: object.System, Kind: object.Kind, Name: object.Key, State: string(object.State), UpdatedAt: object.UpdatedAt,
	}
}

// CleanLeftover starts a cleanup, or returns the running one.
func (a *API) CleanLeftover(r *http.Request) (httpserver.Response, error) {
	return a.changeLeftover(r, "cleaned up", func(ctx context.Context, id, why string) (httpserver.Response, error) {
		cleanup, err := a.Cleaner.Clean(ctx, id, why)
		if err != nil {
			return httpserver.Response{}, err
		}

		record, err := a.Operations.Get(ctx, a.DB.Writer(), cleanup)

		return httpserver.Response{Status: http.StatusAccepted, Body: a.Operation(record)}, err
	})
}

// ConfirmLeftover removes a leftover from the list after an operator has confirmed that nothing is left.
func (a *API) ConfirmLeftover(r *http.Request) (httpserver.Response, error) {
	return a.changeLeftover(r, "confirmed", func(ctx context.Context, id, why string) (httpserver.Response, error) {
		leftover, found, err := a.Cleaner.Confirm(ctx, id, why)

		objects := make([]operatorapi.OutsideObject, 0, len(found))
		for _, object := range found {
			objects = append(objects, shownObject(object))
		}

		return httpserver.OK(shownLeftover(leftover, objects)), err
	})
}

// changeLeftover reads the request and makes the change. It logs each request. done is the end of the log message, such as
// "confirmed".
func (a *API) changeLeftover(
	r *http.Request, done string, change func(ctx context.Context, id, why string) (httpserver.Response, error),
) (httpserver.Response, error) {
	var wanted operatorapi.Justification

	id, err := operatorserver.Segment(r, "leftover_id")
	if err == nil {
		err = operatorserver.ReadStrictly(r.Body, &wanted, textJustification)
	}

	if err == nil {
		wanted.Reason, err = operatorserver.CheckReason(wanted.Reason)
	}

	by := cmp.Or(auth.FromContext(r.Context()).Name, operatorserver.Anonymous)
	line := a.Log.WithFields(logrus.Fields{logging.User: by, logging.OperationID: id, logging.Reason: wanted.Reason})

	var response httpserver.Response
	if err == nil {
		response, err = change(r.Context(), id, "by "+by+": "+wanted.Reason)
	}

	switch {
	case errors.Is(err, operations.ErrSealed):
		err = &httpserver.Refusal{Status: http.StatusConflict, Description: textSealed, Cause: err}
	case storage.IsDuplicate(err):
		err = operatorserver.Conflict("Another request was accepted first. Try again.")
	}

	if err != nil {
		line.WithError(err).Warn("audit: leftover not " + done)

		return httpserver.Response{}, err
	}

	line.Info("audit: leftover " + done)

	return response, nil
}
