package osb

import (
	"net/http"
	"strings"

	"github.com/environment-broker/environment-broker/test/harness"
)

func rowEveryPlanIsFetchable(r *row) {
	for _, planID := range []string{harness.PlanAWS, harness.PlanAzure, harness.PlanGCP, harness.PlanTrial} {
		id := r.ready(fields{"plan_id": planID, "parameters": nil})
		if got := r.want("a fetch", r.get(harness.InstancePath(id)), http.StatusOK); got.Text("plan_id") != planID {
			r.Errorf("the plan is %q, not %s", got.Text("plan_id"), planID)
		}
	}
}

func rowFetchAfterPoll(r *row) {
	r.want("a fetch", r.get(harness.InstancePath(r.ready())), http.StatusOK)
}

func rowFetchOfUnknownInstanceIs404(r *row) {
	r.want("an unknown instance", r.get(harness.InstancePath(r.newID())), http.StatusNotFound)
}

func rowFetchDuringCreationIs404(r *row) {
	lift := r.hold(callOrder)
	defer lift()

	id := r.newID()
	r.want("an order", r.put(id, r.order()), http.StatusAccepted)
	r.want("a fetch during the creation", r.get(harness.InstancePath(id)), http.StatusNotFound)
	lift()
	r.succeeded(harness.InstancePath(id), "")

	defer r.refuse(callOrder)()

	bad := r.newID()
	r.want("an order", r.put(bad, r.order()), http.StatusAccepted)
	r.failed(harness.InstancePath(bad), "")
	r.want("a fetch of what was never made", r.get(harness.InstancePath(bad)), http.StatusNotFound)
}

func rowFetchDuringUpdateReturnsActual(r *row) {
	id := r.ready()
	before := r.get(harness.InstancePath(id)).Raw

	lift := r.hold(callUpgrade)
	defer lift()

	operation := r.want("an update", r.update(id, r.patch()), http.StatusAccepted).Text("operation")
	if during := r.want("a fetch during the update", r.get(harness.InstancePath(id)), http.StatusOK); during.Raw != before {
		r.Errorf("it returns the wanted state, not the actual one: %s", during.Raw)
	}

	lift()
	r.succeeded(harness.InstancePath(id), operation)

	if after := r.get(harness.InstancePath(id)); after.Object("parameters")["autoScalerMax"] != 12.0 {
		r.Errorf("it does not return the updated state: %s", after.Raw)
	}
}

func rowFetchReturnsAllFields(r *row) {
	got := r.get(harness.InstancePath(r.ready()))
	if got.Text("service_id") != harness.ServiceID || got.Text("plan_id") != harness.PlanAWS || got.Text("dashboard_url") == "" ||
		got.Object("parameters")["region"] != "eu-west-1" || got.Object("metadata") == nil ||
		got.Object("maintenance_info")["version"] != maintenanceVersion(r, harness.PlanAWS) {
		r.Errorf("a field is missing or wrong: %s", got.Raw)
	}
}

func rowFetchReturnsNoSecret(r *row) {
	id := r.ready(fields{"context": fields{
		"platform": "x", "user_id": "marked-user", "sm_operator_credentials": fields{"clientid": "marked-id", "clientsecret": "marked-secret"},
	}})

	if got := r.get(harness.InstancePath(id)); strings.Contains(got.Raw, "marked") {
		r.Errorf("a secret or a user is returned: %s", got.Raw)
	}
}

func rowFetchHintsAreIgnored(r *row) {
	id := r.ready()
	r.want("right hints", r.get(harness.InstancePath(id)+"?"+ids), http.StatusOK)

	for _, wrong := range []string{"?service_id=x&plan_id=y", "?service_id=&plan_id=", "?plan_id=" + harness.PlanGCP} {
		r.want("hints are hints: "+wrong, r.get(harness.InstancePath(id)+wrong), http.StatusOK)
	}
}

func rowFetchOfDeletedInstanceIs404(r *row) {
	id := r.ready()
	r.removed(id)
	r.want("a deleted instance", r.get(harness.InstancePath(id)), http.StatusNotFound)
}

func rowFetchDuringDeletion(r *row) {
	id := r.ready()

	lift := r.hold(callRemoval)
	defer lift()

	r.want("a deletion", r.remove(id), http.StatusAccepted)
	r.want("a fetch meanwhile", r.get(harness.InstancePath(id)), http.StatusUnprocessableEntity, "ConcurrencyError")
}
