package osb

import (
	"encoding/json"
	"net/http"

	"github.com/environment-broker/environment-broker/test/harness"
)

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

// bindable reports whether instances of the plan can be bound. The plan's value, if set, overrides the offering's value.
func (o offering) bindable(plan plan) bool {
	if plan.Bindable != nil {
		return *plan.Bindable
	}

	return *o.Bindable
}

// changeable reports whether instances of the plan can change to another plan. The plan's value, if set, overrides the offering's
// value.
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

func (p platform) eachPlan(visit func(offering, plan)) {
	p.Helper()

	for _, offering := range p.catalog() {
		for _, plan := range offering.Plans {
			visit(offering, plan)
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

// publishedIDs returns the ID of each offering and plan by name. Platforms store these IDs, so the IDs never change.
func publishedIDs() map[string]string {
	return map[string]string{
		"kymaruntime": harness.ServiceID, "aws": harness.PlanAWS, "azure": harness.PlanAzure, "gcp": harness.PlanGCP, "trial": harness.PlanTrial,
		"azure_lite": harness.PlanAzureLite, "sap-converged-cloud": harness.PlanConvergedCloud, "free": harness.PlanFree,
		"own_cluster": harness.PlanOwnCluster, "preview": harness.PlanPreview,
	}
}
