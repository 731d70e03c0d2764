package ebctl_test

import (
	"encoding/json"
	"net/http"
	"slices"
	"time"

	"github.com/pivotal-cf/brokerapi/v10/domain"
	"github.com/pivotal-cf/brokerapi/v10/domain/apiresponses"

	"github.com/environment-broker/environment-broker/internal/operatorapi"
)

// IDs of the only service in the catalog and of its plans aws and trial.
const (
	serviceID   = "11111111-1111-4111-8111-111111111111"
	planIDAWS   = "22222222-2222-4222-8222-222222222222"
	planIDTrial = "33333333-3333-4333-8333-333333333333"
)

// osb wraps a handler and rejects requests without the headers and parameters that the Open Service Broker API requires.
func osb(handle http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		identity := r.Header.Get("X-Broker-Api-Request-Identity")
		w.Header().Set("X-Broker-Api-Request-Identity", identity)

		switch {
		case r.Header.Get("X-Broker-Api-Version") != "2.17":
			refuse(w, http.StatusPreconditionFailed, "", "X-Broker-API-Version has to be 2.17")
		case identity == "":
			refuse(w, http.StatusBadRequest, "", "X-Broker-API-Request-Identity is missing")
		case r.Method != http.MethodGet && r.URL.Query().Get("accepts_incomplete") != "true":
			refuse(w, http.StatusUnprocessableEntity, "AsyncRequired",
				"This service plan requires client support for asynchronous service operations.")
		default:
			handle(w, r)
		}
	}
}

func (b *fakeBroker) catalog(w http.ResponseWriter, _ *http.Request) {
	answer(w, http.StatusOK, apiresponses.CatalogResponse{Services: []domain.Service{{
		ID: serviceID, Name: "runtime", Description: "A Kubernetes runtime", InstancesRetrievable: true,
		Plans: []domain.ServicePlan{
			{ID: planIDAWS, Name: "aws", Description: "On Amazon Web Services", Free: new(false)},
			{ID: planIDTrial, Name: "trial", Description: "For two weeks", Free: new(true), MaintenanceInfo: &domain.MaintenanceInfo{Version: "1.1.0"}},
		},
	}}})
}

func (b *fakeBroker) provision(w http.ResponseWriter, r *http.Request) {
	var details domain.ProvisionDetails
	if err := json.NewDecoder(r.Body).Decode(&details); err != nil {
		refuse(w, http.StatusBadRequest, "", err.Error())

		return
	}

	plans := map[string]string{planIDAWS: "aws", planIDTrial: "trial"}

	switch {
	case details.ServiceID != serviceID || plans[details.PlanID] == "":
		refuse(w, http.StatusBadRequest, "", "service_id or plan_id is not in the catalog")

		return
	case details.OrganizationGUID == "" || details.SpaceGUID == "":
		refuse(w, http.StatusBadRequest, "", "organization_guid or space_guid is missing")

		return
	case b.find(r.PathValue("id")) >= 0:
		refuse(w, http.StatusConflict, "Conflict", "an instance with this id and other parameters exists")

		return
	}

	var context struct {
		Name string `json:"instance_name"`
	}

	if err := json.Unmarshal(details.RawContext, &context); err != nil {
		refuse(w, http.StatusBadRequest, "", "context: "+err.Error())

		return
	}

	b.runtimes = append(b.runtimes, operatorapi.Runtime{
		InstanceID: r.PathValue("id"), Name: context.Name, GlobalAccountID: details.OrganizationGUID,
		SubAccountID: details.SpaceGUID, SubAccountRegion: r.PathValue("platform_region"),
		ServiceClassID: details.ServiceID, ServicePlanID: details.PlanID, ServicePlanName: plans[details.PlanID],
		Status: operatorapi.RuntimeStatus{State: operatorapi.RuntimeStateProvisioning},
	})

	status := http.StatusAccepted
	if b.scenario.Provision == "" {
		status = http.StatusCreated
	}

	answer(w, status, apiresponses.ProvisioningResponse{
		OperationData: b.scenario.Provision,
		DashboardURL:  "https://dashboard.example.com/" + r.PathValue("id"),
	})
}

func (b *fakeBroker) fetch(w http.ResponseWriter, r *http.Request) {
	index := b.find(r.PathValue("id"))
	if index < 0 {
		refuse(w, http.StatusNotFound, "", "there is no such instance")

		return
	}

	answer(w, http.StatusOK, apiresponses.GetInstanceResponse{
		ServiceID: serviceID, PlanID: b.runtimes[index].ServicePlanID, Parameters: map[string]any{"autoScalerMin": 3},
	})
}

func (b *fakeBroker) update(w http.ResponseWriter, r *http.Request) {
	var sent struct {
		ServiceID string `json:"service_id"`
	}

	switch err := json.NewDecoder(r.Body).Decode(&sent); {
	case err != nil || sent.ServiceID != serviceID:
		refuse(w, http.StatusBadRequest, "", "service_id is not in the catalog")
	case b.find(r.PathValue("id")) < 0:
		refuse(w, http.StatusNotFound, "", "there is no such instance")
	case b.scenario.Update == "":
		answer(w, http.StatusOK, struct{}{})
	default:
		answer(w, http.StatusAccepted, apiresponses.UpdateResponse{OperationData: b.scenario.Update})
	}
}

func (b *fakeBroker) expire(w http.ResponseWriter, r *http.Request) {
	switch {
	case b.find(r.PathValue("id")) < 0:
		refuse(w, http.StatusNotFound, "NotFound", "there is no such instance")
	case b.scenario.Expire == "":
		answer(w, http.StatusOK, operatorapi.Expiration{})
	default:
		answer(w, http.StatusAccepted, operatorapi.Expiration{Operation: b.scenario.Expire})
	}
}

func (b *fakeBroker) deprovision(w http.ResponseWriter, r *http.Request) {
	index := b.find(r.PathValue("id"))
	if index < 0 {
		answer(w, http.StatusGone, struct{}{})

		return
	}

	query := r.URL.Query()
	if query.Get("service_id") != serviceID || query.Get("plan_id") != b.runtimes[index].ServicePlanID {
		refuse(w, http.StatusBadRequest, "", "service_id and plan_id are not those of the instance")

		return
	}

	if b.scenario.Deprovision == "" {
		b.runtimes = slices.Delete(b.runtimes, index, index+1)

		answer(w, http.StatusOK, struct{}{})

		return
	}

	b.runtimes[index].Status.State = operatorapi.RuntimeStateDeprovisioning

	answer(w, http.StatusAccepted, apiresponses.DeprovisionResponse{OperationData: b.scenario.Deprovision})
}

// find returns the index of the instance's runtime, or -1 if the instance is unknown.
func (b *fakeBroker) find(instanceID string) int {
	return slices.IndexFunc(b.runtimes, func(runtime operatorapi.Runtime) bool {
		return runtime.InstanceID == instanceID
	})
}

// bindingOrder is the body of a request to create a binding.
type bindingOrder struct {
	ServiceID   string `json:"service_id"`
	PlanID      string `json:"plan_id"`
	Predecessor string `json:"predecessor_binding_id"`
	Parameters  struct {
		Role    string `json:"role"`
		Seconds int    `json:"expiration_seconds"`
	} `json:"parameters"`
}

// bound wraps a handler of binding requests. It rejects requests with a different API version or for an unknown instance.
func (b *fakeBroker) bound(handle http.HandlerFunc) http.HandlerFunc {
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

func (b *fakeBroker) bind(w http.ResponseWriter, r *http.Request) {
	var order bindingOrder
	if err := json.NewDecoder(r.Body).Decode(&order); err != nil || order.ServiceID != serviceID {
		refuse(w, http.StatusBadRequest, "", "the request is invalid")

		return
	}

	if order.Parameters.Seconds == 0 {
		order.Parameters.Seconds = 600
	}

	made := operatorapi.Binding{
		BindingID: r.PathValue("binding"), InstanceID: r.PathValue("id"), State: "ready", Role: order.Parameters.Role,
		PredecessorID: order.Predecessor, ExpiresAt: bindingsCreatedAt.Add(time.Duration(order.Parameters.Seconds) * time.Second),
	}

	if b.findBinding(r) >= 0 {
		refuse(w, http.StatusConflict, "", "a binding with this id exists")

		return
	}

	b.bindings = append(b.bindings, made)

	answer(w, http.StatusCreated, b.fetched(made))
}

// bindingsCreatedAt is the creation time of all bindings.
var bindingsCreatedAt = time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)

func (b *fakeBroker) fetched(made operatorapi.Binding) map[string]any {
	return map[string]any{
		"credentials": map[string]any{"kubeconfig": b.scenario.Kubeconfig.Kubeconfig},
		"parameters":  map[string]any{"role": made.Role},
		"metadata":    map[string]any{"expires_at": made.ExpiresAt, "renew_before": made.ExpiresAt},
	}
}

func (b *fakeBroker) fetchBinding(w http.ResponseWriter, r *http.Request) {
	index := b.findBinding(r)
	if index < 0 {
		refuse(w, http.StatusNotFound, "", "there is no such binding")

		return
	}

	answer(w, http.StatusOK, b.fetched(b.bindings[index]))
}

func (b *fakeBroker) unbind(w http.ResponseWriter, r *http.Request) {
	index := b.findBinding(r)

	switch {
	case r.URL.Query().Get("service_id") != serviceID || r.URL.Query().Get("plan_id") == "":
		refuse(w, http.StatusBadRequest, "", "service_id and plan_id are not those of the instance")
	case index < 0:
		refuse(w, http.StatusGone, "", "there is no such binding")
	default:
		b.bindings = slices.Delete(b.bindings, index, index+1)

		answer(w, http.StatusOK, struct{}{})
	}
}

func (b *fakeBroker) listBindings(w http.ResponseWriter, r *http.Request) {
	list := operatorapi.BindingList{Data: []operatorapi.Binding{}}

	for _, binding := range b.bindings {
		if binding.InstanceID == r.PathValue("id") {
			list.Data = append(list.Data, binding)
		}
	}

	answer(w, http.StatusOK, list)
}

// findBinding returns the index of the binding with the IDs in the path, or -1 if the binding is unknown.
func (b *fakeBroker) findBinding(r *http.Request) int {
	return slices.IndexFunc(b.bindings, func(binding operatorapi.Binding) bool {
		return binding.InstanceID == r.PathValue("id") && binding.BindingID == r.PathValue("binding")
	})
}
