package broker

import (
	"encoding/json"
	"net/http"

	"github.com/pivotal-cf/brokerapi/v10/domain"
	"github.com/pivotal-cf/brokerapi/v10/domain/apiresponses"

	"github.com/environment-broker/environment-broker/internal/httpserver"
	"github.com/environment-broker/environment-broker/internal/logging"
	"github.com/environment-broker/environment-broker/storage"
)

// wish is an update as the platform sends it. What is empty is to stay as it is.
type wish struct {
	instanceID        string
	serviceID, planID string
	context           json.RawMessage
	parameters        json.RawMessage
	maintenance       *domain.MaintenanceInfo
	// active is what the context says about the runtime: false to suspend it, true to resume it.
	active *bool
	// account is the global account in the context.
	account         string
	acceptsDeferred bool
}

// updated is what came of an update. Without an operation it is done.
type updated struct {
	operation string
	accepted  bool
}

// update answers PATCH /v2/service_instances/{instance_id}.
func (a *api) update(r *http.Request) (httpserver.Answer, error) {
	wish, err := readWish(r)
	if err != nil {
		return httpserver.Answer{}, refusedUpdate(err)
	}

	var outcome updated

	err = a.inTx(r.Context(), func(tx storage.Tx) error {
		var err error

		outcome, err = a.decide(r.Context(), tx, wish)

		return err
	})
	if err != nil {
		return httpserver.Answer{}, refusedUpdate(err)
	}

	if outcome.operation == "" {
		return httpserver.OK(struct{}{}), nil
	}

	httpserver.Note(r.Context(), logging.OperationID, outcome.operation)

	if outcome.accepted {
		a.Wake()
	}

	return httpserver.Answer{
		Status: http.StatusAccepted, Body: apiresponses.UpdateResponse{OperationData: outcome.operation},
	}, nil
}

func readWish(r *http.Request) (wish, error) {
	id, err := instanceID(r)
	if err != nil {
		return wish{}, err
	}

	values, err := query(r)
	if err != nil {
		return wish{}, err
	}

	sent, err := readBody(r)
	if err != nil {
		return wish{}, err
	}

	context := sent.inner("context")
	read := wish{
		instanceID:      id,
		serviceID:       sent.required("service_id"),
		planID:          sent.text("plan_id"),
		context:         sent.object("context"),
		parameters:      sent.object("parameters"),
		maintenance:     sent.maintenance(),
		active:          context.flag("active"),
		account:         context.label("globalaccount_id"),
		acceptsDeferred: acceptsIncomplete(values),
	}

	sent.keep(context.err)

	return read, sent.err
}

// refusedUpdate tells with an error whether the same update may succeed later.
func refusedUpdate(err error) error {
	refusal := *httpserver.RefusalOf(err)
	refusal.UpdateRepeatable = new(refusal.Status >= http.StatusInternalServerError || refusal.Code == codeConcurrency)

	return &refusal
}
