package broker

import (
	"context"
	"net/http"
	"net/url"

	"github.com/pivotal-cf/brokerapi/v10/domain/apiresponses"

	"github.com/environment-broker/environment-broker/internal/environment"
	"github.com/environment-broker/environment-broker/internal/httpserver"
	"github.com/environment-broker/environment-broker/internal/logging"
	"github.com/environment-broker/environment-broker/storage"
)

// whyCanceled is the line in the timeline of operations that a deletion ends.
const whyCanceled = "the instance is to be deleted"

// deprovision answers DELETE /v2/service_instances/{instance_id}. It is accepted whatever else runs.
func (a *api) deprovision(r *http.Request) (httpserver.Answer, error) {
	id, err := instanceID(r)
	if err != nil {
		return httpserver.Answer{}, err
	}

	values, err := idsQuery(r)
	if err != nil {
		return httpserver.Answer{}, err
	}

	var (
		operation string
		accepted  bool
	)

	err = a.inTx(r.Context(), func(tx storage.Tx) error {
		var err error

		operation, accepted, err = a.end(r.Context(), tx, id, values)

		return err
	})
	if err != nil {
		return httpserver.Answer{}, err
	}

	httpserver.Note(r.Context(), logging.OperationID, operation)

	if accepted {
		a.Wake()
	}

	return httpserver.Answer{
		Status: http.StatusAccepted, Body: apiresponses.DeprovisionResponse{OperationData: operation},
	}, nil
}

// end decides on a deletion inside the transaction: it returns the one that runs, or a new one. To touch the instance first makes
// two deletions of the same moment take turns.
func (a *api) end(ctx context.Context, tx storage.Tx, id string, values url.Values) (operation string, accepted bool, err error) {
	present, err := a.Instances.Touch(ctx, tx, id, a.Clock.Now())
	if err != nil {
		return "", false, err
	}

	newest, _, err := a.latest(ctx, tx, id, lifeKinds()...)
	if err != nil {
		return "", false, err
	}

	deleting := beingDeleted(newest) && goesOn(newest)

	var instance environment.Instance

	if present {
		if instance, err = a.Instances.Get(ctx, tx, id); err != nil {
			return "", false, err
		}

		if instance.ServiceID != values.Get("service_id") || instance.PlanID != values.Get("plan_id") {
			return "", false, invalid("service_id or plan_id is not that of the instance.")
		}
	} else if !deleting {
		return "", false, gone()
	}

	switch {
	case !acceptsIncomplete(values):
		return "", false, asyncRequired()
	case deleting:
		return newest.ID, false, nil
	}

	if _, err := a.Operations.Cancel(ctx, tx, id, whyCanceled, a.Clock.Now()); err != nil {
		return "", false, err
	}

	deletion, err := environment.NewOperation(environment.KindDeprovision, instance, nil, a.Clock.Now())
	if err != nil {
		return "", false, err
	}

	if deletion, err = ordered(ctx, deletion, &instance, nil); err != nil {
		return "", false, err
	}

	return deletion.ID, true, a.Operations.Accept(ctx, tx, deletion)
}

// idsQuery returns the query of a request that has to name service and plan in it.
func idsQuery(r *http.Request) (url.Values, error) {
	values, err := query(r)
	if err != nil {
		return nil, err
	}

	for _, name := range []string{"service_id", "plan_id"} {
		if values.Get(name) == "" {
			return nil, invalid(name + " is missing in the query.")
		}
	}

	return values, nil
}
