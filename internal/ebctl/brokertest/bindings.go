package brokertest

import (
	"encoding/json"
	"net/http"
	"slices"
	"time"

	"github.com/environment-broker/environment-broker/internal/operatorapi"
)

// bindingOrder is what a platform may say of a binding.
type bindingOrder struct {
	ServiceID   string `json:"service_id"`
	PlanID      string `json:"plan_id"`
	Predecessor string `json:"predecessor_binding_id"`
	Parameters  struct {
		Role    string `json:"role"`
		Seconds int    `json:"expiration_seconds"`
	} `json:"parameters"`
}

// bound insists on what the protocol demands of requests for bindings, and on an instance.
func (b *Broker) bound(handle http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.Header.Get("X-Broker-Api-Version") != "2.17":
			refuse(w, http.StatusPreconditionFailed, "", "X-Broker-API-Version has to be 2.17")
		case b.find(r.PathValue("id")) < 0:
			refuse(w, http.StatusNotFound, "", "there is no such instance")
		default:
			handle(w, r)
		}
	}
}

func (b *Broker) bind(w http.ResponseWriter, r *http.Request) {
	var order bindingOrder
	if err := json.NewDecoder(r.Body).Decode(&order); err != nil || order.ServiceID != ServiceID {
		refuse(w, http.StatusBadRequest, "", "the request is wrong")

		return
	}

	if order.Parameters.Seconds == 0 {
		order.Parameters.Seconds = 600
	}

	made := operatorapi.Binding{
		BindingID: r.PathValue("binding"), InstanceID: r.PathValue("id"), State: "ready", Role: order.Parameters.Role,
		PredecessorID: order.Predecessor, ExpiresAt: bindingsBegan.Add(time.Duration(order.Parameters.Seconds) * time.Second),
	}

	if b.findBinding(r) >= 0 {
		refuse(w, http.StatusConflict, "", "a binding with this id exists")

		return
	}

	b.bindings = append(b.bindings, made)

	answer(w, http.StatusCreated, b.fetched(made))
}

// bindingsBegan is when all bindings are made.
var bindingsBegan = time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)

func (b *Broker) fetched(made operatorapi.Binding) map[string]any {
	return map[string]any{
		"credentials": map[string]any{"kubeconfig": b.scenario.Kubeconfig.Kubeconfig},
		"parameters":  map[string]any{"role": made.Role},
		"metadata":    map[string]any{"expires_at": made.ExpiresAt, "renew_before": made.ExpiresAt},
	}
}

func (b *Broker) fetchBinding(w http.ResponseWriter, r *http.Request) {
	index := b.findBinding(r)
	if index < 0 {
		refuse(w, http.StatusNotFound, "", "there is no such binding")

		return
	}

	answer(w, http.StatusOK, b.fetched(b.bindings[index]))
}

func (b *Broker) unbind(w http.ResponseWriter, r *http.Request) {
	index := b.findBinding(r)

	switch {
	case r.URL.Query().Get("service_id") != ServiceID || r.URL.Query().Get("plan_id") == "":
		refuse(w, http.StatusBadRequest, "", "service_id and plan_id are not those of the instance")
	case index < 0:
		refuse(w, http.StatusGone, "", "there is no such binding")
	default:
		b.bindings = slices.Delete(b.bindings, index, index+1)

		answer(w, http.StatusOK, struct{}{})
	}
}

func (b *Broker) listBindings(w http.ResponseWriter, r *http.Request) {
	list := operatorapi.BindingList{Data: []operatorapi.Binding{}}

	for _, binding := range b.bindings {
		if binding.InstanceID == r.PathValue("id") {
			list.Data = append(list.Data, binding)
		}
	}

	answer(w, http.StatusOK, list)
}

// findBinding returns the place of the binding that the path names, or -1.
func (b *Broker) findBinding(r *http.Request) int {
	return slices.IndexFunc(b.bindings, func(binding operatorapi.Binding) bool {
		return binding.InstanceID == r.PathValue("id") && binding.BindingID == r.PathValue("binding")
	})
}
