package osb

import (
	"encoding/json"
	"net/http"

	"github.com/environment-broker/environment-broker/test/harness"
)

// offering is a service of the catalog.
type offering struct {
	ID, Name, Description string
	Bindable              *bool
	PlanUpdateable        bool `json:"plan_updateable"`
	InstancesRetrievable  bool `json:"instances_retrievable"`
	BindingsRetrievable   bool `json:"bindings_retrievable"`
	AllowContextUpdates   bool `json:"allow_context_updates"`
	Requires              []string
	DashboardClient       map[string]any `json:"dashboard_client"`
	Metadata              map[string]any
	Plans                 []plan
}

// plan is a plan of the catalog.
type plan struct {
	ID, Name, Description string
	Free                  *bool
	Bindable              *bool
	PlanUpdateable        *bool `json:"plan_updateable"`
	BindingRotatable      bool  `json:"binding_rotatable"`
	Metadata              map[string]any
	Schemas               map[string]map[string]struct {
		Parameters map[string]any
	}
	MaximumPollingDuration *int                                   `json:"maximum_polling_duration"`
	MaintenanceInfo        *struct{ Version, Description string } `json:"maintenance_info"`
}

// bindable reports whether instances of the plan can be bound. The plan overrides the offering.
func (o offering) bindable(plan plan) bool {
	if plan.Bindable != nil {
		return *plan.Bindable
	}

	return *o.Bindable
}

// changeable reports whether the plan of an instance can be changed.
func (o offering) changeable(plan plan) bool {
	if plan.PlanUpdateable != nil {
		return *plan.PlanUpdateable
	}

	return o.PlanUpdateable
}

func (p platform) catalog() []offering {
	p.Helper()

	var decoded struct{ Services []offering }

	got := p.want("the catalog", p.get("/v2/catalog"), http.StatusOK)
	if err := json.Unmarshal([]byte(got.Raw), &decoded); err != nil {
		p.Fatalf("decoding the catalog: %v", err)
	}

	return decoded.Services
}

// eachPlan calls the function with every plan.
func (p platform) eachPlan(do func(offering, plan)) {
	p.Helper()

	for _, offering := range p.catalog() {
		for _, plan := range offering.Plans {
			do(offering, plan)
		}
	}
}

// maintenanceVersion returns the maintenance version of a plan in the catalog, or "".
func maintenanceVersion(r *row, planID string) string {
	version := ""

	r.eachPlan(func(_ offering, plan plan) {
		if plan.ID == planID && plan.MaintenanceInfo != nil {
			version = plan.MaintenanceInfo.Version
		}
	})

	return version
}

// published returns the IDs that platforms have stored, by name of the offering or plan. They never change.
func published() map[string]string {
	return map[string]string{
		"kymaruntime": harness.ServiceID, "aws": harness.PlanAWS, "azure": harness.PlanAzure, "gcp": harness.PlanGCP, "trial": harness.PlanTrial,
		"azure_lite":          "8cb22518-aa26-44c5-91a0-e669ec9bf443",
		"sap-converged-cloud": "03b812ac-c991-4528-b5bd-08b303523a63",
		"free":                "b1a5764e-2ea1-4f95-94c0-2b4538b37b55",
		"own_cluster":         "03e3cb66-a4c6-4c6a-b4b0-5d42224debea",
		"preview":             "5cb3d976-b85c-42ea-a636-79cadda109a9",
	}
}
