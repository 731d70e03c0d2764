package brokertest

import (
	"encoding/json"
	"net/http"
	"slices"

	"github.com/pivotal-cf/brokerapi/v10/domain"
	"github.com/pivotal-cf/brokerapi/v10/domain/apiresponses"

	"github.com/environment-broker/environment-broker/internal/operatorapi"
)

// The ids of the only service and of its plans, aws and trial.
const (
	ServiceID   = "11111111-1111-4111-8111-111111111111"
	PlanIDAWS   = "22222222-2222-4222-8222-222222222222"
	PlanIDTrial = "33333333-3333-4333-8333-333333333333"
)

// osb insists on what the protocol demands of every request.
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

func (b *Broker) catalog(w http.ResponseWriter, _ *http.Request) {
	answer(w, http.StatusOK, apiresponses.CatalogResponse{Services: []domain.Service{{
		ID: ServiceID, Name: "runtime", Description: "A Kubernetes runtime", InstancesRetrievable: true,
		Plans: []domain.ServicePlan{
			{ID: PlanIDAWS, Name: "aws", Description: "On Amazon Web Services", Free: new(false)},
			{ID: PlanIDTrial, Name: "trial", Description: "For two weeks", Free: new(true), MaintenanceInfo: &domain.MaintenanceInfo{Version: "1.1.0"}},
		},
	}}})
}

func (b *Broker) provision(w http.ResponseWriter, r *http.Request) {
	var details domain.ProvisionDetails
	if err := json.NewDecoder(r.Body).Decode(&details); err != nil {
		refuse(w, http.StatusBadRequest, "", err.Error())

		return
	}

	plans := map[string]string{PlanIDAWS: "aws", PlanIDTrial: "trial"}

	switch {
	case details.ServiceID != ServiceID || plans[details.PlanID] == "":
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
		Status: operatorapi.RuntimeStatus{State: operatorapi.RuntimeProvisioning},
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

func (b *Broker) fetch(w http.ResponseWriter, r *http.Request) {
	index := b.find(r.PathValue("id"))
	if index < 0 {
		refuse(w, http.StatusNotFound, "", "there is no such instance")

		return
	}

	answer(w, http.StatusOK, apiresponses.GetInstanceResponse{
		ServiceID: ServiceID, PlanID: b.runtimes[index].ServicePlanID, Parameters: map[string]any{"autoScalerMin": 3},
	})
}

func (b *Broker) update(w http.ResponseWriter, r *http.Request) {
	var sent struct {
		ServiceID string `json:"service_id"`
	}

	switch err := json.NewDecoder(r.Body).Decode(&sent); {
	case err != nil || sent.ServiceID != ServiceID:
		refuse(w, http.StatusBadRequest, "", "service_id is not in the catalog")
	case b.find(r.PathValue("id")) < 0:
		refuse(w, http.StatusNotFound, "", "there is no such instance")
	case b.scenario.Update == "":
		answer(w, http.StatusOK, struct{}{})
	default:
		answer(w, http.StatusAccepted, apiresponses.UpdateResponse{OperationData: b.scenario.Update})
	}
}

func (b *Broker) expire(w http.ResponseWriter, r *http.Request) {
	switch {
	case b.find(r.PathValue("id")) < 0:
		refuse(w, http.StatusNotFound, "NotFound", "there is no such instance")
	case b.scenario.Expire == "":
		answer(w, http.StatusOK, operatorapi.Expiration{})
	default:
		answer(w, http.StatusAccepted, operatorapi.Expiration{Operation: b.scenario.Expire})
	}
}

func (b *Broker) deprovision(w http.ResponseWriter, r *http.Request) {
	index := b.find(r.PathValue("id"))
	if index < 0 {
		answer(w, http.StatusGone, struct{}{})

		return
	}

	query := r.URL.Query()
	if query.Get("service_id") != ServiceID || query.Get("plan_id") != b.runtimes[index].ServicePlanID {
		refuse(w, http.StatusBadRequest, "", "service_id and plan_id are not those of the instance")

		return
	}

	if b.scenario.Deprovision == "" {
		b.runtimes = slices.Delete(b.runtimes, index, index+1)

		answer(w, http.StatusOK, struct{}{})

		return
	}

	b.runtimes[index].Status.State = operatorapi.RuntimeDeprovisioning

	answer(w, http.StatusAccepted, apiresponses.DeprovisionResponse{OperationData: b.scenario.Deprovision})
}

// find returns the place of a runtime, or -1.
func (b *Broker) find(instanceID string) int {
	return slices.IndexFunc(b.runtimes, func(runtime operatorapi.Runtime) bool {
		return runtime.InstanceID == instanceID
	})
}
