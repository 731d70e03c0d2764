package operator

import (
	"net/http"

	"github.com/environment-broker/environment-broker/internal/environment"
	"github.com/environment-broker/environment-broker/internal/httpserver"
	"github.com/environment-broker/environment-broker/internal/operatorapi"
)

// listBindings lists the bindings of an instance, without their credentials.
func (a *api) listBindings(r *http.Request) (httpserver.Response, error) {
	instance, err := a.instance(r)
	if err != nil {
		return httpserver.Response{}, err
	}

	bindings, err := a.Bindings.OfInstance(r.Context(), instance.ID)
	if err != nil {
		return httpserver.Response{}, err
	}

	list := operatorapi.BindingList{Data: []operatorapi.Binding{}}
	for _, binding := range bindings {
		list.Data = append(list.Data, a.binding(binding, instance))
	}

	return httpserver.OK(list), nil
}

// binding converts a binding of the instance. The shown state also reports a ready binding whose credentials do
// not work: orphaned if the instance has another runtime or none, expired after its lifetime.
func (a *api) binding(binding environment.Binding, instance environment.Instance) operatorapi.Binding {
	state := string(binding.State)

	switch {
	case binding.State != environment.BindingReady:
	case binding.RuntimeID != instance.RuntimeID:
		state = "orphaned"
	case !binding.ExpiresAt.After(a.Clock.Now()):
		state = "expired"
	}

	return operatorapi.Binding{
		BindingID:     binding.BindingID,
		InstanceID:    binding.InstanceID,
		State:         state,
		Role:          string(binding.Role),
		Account:       binding.Account(),
		PredecessorID: binding.Predecessor,
		CreatedBy:     binding.CreatedBy,
		OperationID:   binding.OperationID,
		CreatedAt:     binding.CreatedAt,
		ExpiresAt:     binding.ExpiresAt,
	}
}
