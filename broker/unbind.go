package broker

import (
	"context"
	"errors"
	"net/http"
	"net/url"

	"github.com/environment-broker/environment-broker/internal/environment"
	"github.com/environment-broker/environment-broker/internal/httpserver"
	"github.com/environment-broker/environment-broker/internal/logging"
	"github.com/environment-broker/environment-broker/storage"
)

// unbind answers DELETE …/service_bindings/{binding_id}. It is accepted while the binding is still being made.
func (a *api) unbind(r *http.Request) (httpserver.Answer, error) {
	instanceID, bindingID, err := bindingIDs(r)
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

		operation, accepted, err = a.placeUnbinding(r.Context(), tx, instanceID, bindingID, values)

		return err
	})
	if err != nil {
		return httpserver.Answer{}, err
	}

	httpserver.Note(r.Context(), logging.OperationID, operation)

	if accepted {
		a.Wake()
	}

	if acceptsIncomplete(values) && speaks(r, deferredBinds) {
		return httpserver.Answer{Status: http.StatusAccepted, Body: bindingOperation{operation}}, nil
	}

	if err := a.await(r.Context(), operation); err != nil {
		return httpserver.Answer{}, err
	}

	return httpserver.OK(struct{}{}), nil
}

// placeUnbinding decides inside the transaction: it returns the removal that runs, or a new one.
func (a *api) placeUnbinding(ctx context.Context, tx storage.Tx, instanceID, bindingID string, values url.Values,
) (operation string, accepted bool, err error) {
	if _, err := a.Instances.Lock(ctx, tx, instanceID); err != nil {
		return "", false, err
	}

	instance, err := a.Instances.Get(ctx, tx, instanceID)

	switch {
	case errors.Is(err, storage.ErrNotFound):
		return "", false, httpserver.Refuse(http.StatusGone, textNoBinding)
	case err != nil:
		return "", false, err
	case instance.ServiceID != values.Get("service_id") || instance.PlanID != values.Get("plan_id"):
		return "", false, invalid("service_id or plan_id is not that of the instance.")
	}

	binding, err := a.Bindings.Get(ctx, tx, instanceID, bindingID)

	switch {
	case errors.Is(err, storage.ErrNotFound):
		return "", false, httpserver.Refuse(http.StatusGone, textNoBinding)
	case err != nil:
		return "", false, err
	}

	if binding.State == environment.BindingDeleting {
		running, found, err := a.latest(ctx, tx, environment.BindingKey(instanceID, bindingID), environment.KindUnbind)
		if err != nil || found && goesOn(running) {
			return running.ID, false, err
		}
	}

	operation, err = a.endBinding(ctx, tx, instance, binding)

	return operation, true, err
}
