package operator

import (
	"net/http"

	"github.com/environment-broker/environment-broker/internal/environment"
	"github.com/environment-broker/environment-broker/internal/httpserver"
	"github.com/environment-broker/environment-broker/internal/operatorapi"
)

// ListBindings handles GET /runtimes/{instance_id}/bindings. The list does not contain credentials.
func (a *api) ListBindings(r *http.Request) (httpserver.Response, error) {
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

// binding converts a binding of the instance. If the credentials of a ready binding do not work, the state is
// orphaned (the instance has another runtime or none) or expired.
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
