package broker

import (
	"errors"
	"net/http"

	"github.com/environment-broker/environment-broker/internal/environment"
	"github.com/environment-broker/environment-broker/internal/httpserver"
	"github.com/environment-broker/environment-broker/internal/logging"
	"github.com/environment-broker/environment-broker/process"
	"github.com/environment-broker/environment-broker/storage"
)

// fetchBinding answers GET …/service_bindings/{binding_id}.
func (a *api) fetchBinding(r *http.Request) (httpserver.Answer, error) {
	instanceID, bindingID, err := bindingIDs(r)
	if err != nil {
		return httpserver.Answer{}, err
	}

	hints, err := query(r)
	if err != nil {
		return httpserver.Answer{}, err
	}

	instance, err := a.Instances.Get(r.Context(), a.DB.Reader(), instanceID)

	switch {
	case errors.Is(err, storage.ErrNotFound):
		return httpserver.Answer{}, notFound(textNoInstance)
	case err != nil:
		return httpserver.Answer{}, err
	case firstOf(hints.Get("service_id"), instance.ServiceID) != instance.ServiceID,
		firstOf(hints.Get("plan_id"), instance.PlanID) != instance.PlanID:
		return httpserver.Answer{}, notFound(textNoBinding)
	}

	past, err := a.Operations.OfInstance(r.Context(), a.DB.Reader(), instanceID)
	if err != nil {
		return httpserver.Answer{}, err
	}

	binding, err := a.Bindings.Get(r.Context(), a.DB.Reader(), instanceID, bindingID)

	switch {
	case errors.Is(err, storage.ErrNotFound):
		return httpserver.Answer{}, notFound(textNoBinding)
	case err != nil:
		return httpserver.Answer{}, err
	case binding.State != environment.BindingReady, environment.PhaseOf(past) != environment.Active, !a.live(binding, instance):
		return httpserver.Answer{}, notFound(textBindingNotReady)
	}

	return fetchAnswer(r, binding)
}

// lastBindingOperation answers GET …/service_bindings/{binding_id}/last_operation.
func (a *api) lastBindingOperation(r *http.Request) (httpserver.Answer, error) {
	instanceID, bindingID, err := bindingIDs(r)
	if err != nil {
		return httpserver.Answer{}, err
	}

	values, err := query(r)
	if err != nil {
		return httpserver.Answer{}, err
	}

	record, err := a.polled(r.Context(), environment.BindingKey(instanceID, bindingID), values.Get("operation"), bindingKinds()...)

	switch {
	case errors.Is(err, storage.ErrNotFound):
		return httpserver.Answer{}, notFound(textNoBinding)
	case err != nil:
		return httpserver.Answer{}, err
	}

	httpserver.Note(r.Context(), logging.OperationID, record.ID)

	if record.Kind == environment.KindUnbind && record.State == process.Succeeded {
		return httpserver.Answer{}, httpserver.Refuse(http.StatusGone, textNoBinding)
	}

	return a.tell(record), nil
}
