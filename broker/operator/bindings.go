package operator

import (
	"context"
	"net/http"

	"github.com/environment-broker/environment-broker/internal/environment"
	"github.com/environment-broker/environment-broker/internal/httpserver"
	"github.com/environment-broker/environment-broker/internal/operatorapi"
)

// ListBindings handles GET /runtimes/{instance_id}/bindings. The list does not contain credentials.
func (a *API) ListBindings(r *http.Request) (httpserver.Response, error) {
	instance, err := a.instance(r)
	if err != nil {
		return httpserver.Response{}, err
	}

	list, err := a.bindingsOf(r.Context(), instance)

	return httpserver.OK(list), err
}

// BindingList returns the bindings of an instance, without credentials.
func (a *API) BindingList(ctx context.Context, instanceID string) (operatorapi.BindingList, error) {
	instance, err := a.existing(ctx, instanceID)
	if err != nil {
		return operatorapi.BindingList{}, err
	}

	return a.bindingsOf(ctx, instance)
}

func (a *API) bindingsOf(ctx context.Context, instance environment.Instance) (operatorapi.BindingList, error) {
	bindings, err := a.Bindings.OfInstance(ctx, instance.ID)
	if err != nil {
		return operatorapi.BindingList{}, err
	}

	list := operatorapi.BindingList{Data: []operatorapi.Binding{}}
	for _, binding := range bindings {
		list.Data = append(list.Data, a.binding(binding, instance))
	}

	return list, nil
}

// binding converts a binding of the instance. If the credentials of a ready binding do not work, the state is
// orphaned (the instance has another runtime or none) or expired.
func (a *API) binding(binding environment.Binding, instance environment.Instance) operatorapi.Binding {
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
