package osb

import (
	"net/http"
	"strings"

	"github.com/environment-broker/environment-broker/test/harness"
)

func rowEveryPlanIsFetchable(r *row) {
	for _, planID := range []string{harness.PlanAWS, harness.PlanAzure, harness.PlanGCP, harness.PlanTrial} {
		id := r.createInstance(fields{"plan_id": planID, "parameters": nil})
		if got := r.want("a fetch", r.get(harness.InstancePath(id)), http.StatusOK); got.Text("plan_id") != planID {
			r.Errorf("the plan is %q, not %s", got.Text("plan_id"), planID)
		}
	}
}

func rowFetchAfterPoll(r *row) {
	r.want("a fetch", r.get(harness.InstancePath(r.createInstance())), http.StatusOK)
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
	r.wantSucceeded(harness.InstancePath(id), "")

	defer r.refuse(callOrder)()

	bad := r.newID()
	r.want("an order", r.put(bad, r.order()), http.StatusAccepted)
	r.wantFailed(harness.InstancePath(bad), "")
	r.want("a fetch after a failed creation", r.get(harness.InstancePath(bad)), http.StatusNotFound)
}

func rowFetchDuringUpdateReturnsActual(r *row) {
	id := r.createInstance()
	before := r.get(harness.InstancePath(id)).Raw

	lift := r.hold(callUpgrade)
	defer lift()

	operation := r.want("an update", r.update(id, r.patch()), http.StatusAccepted).Text("operation")
	if during := r.want("a fetch during the update", r.get(harness.InstancePath(id)), http.StatusOK); during.Raw != before {
		r.Errorf("a fetch during an update returns the desired state, not the actual one: %s", during.Raw)
	}

	lift()
	r.wantSucceeded(harness.InstancePath(id), operation)

	if after := r.get(harness.InstancePath(id)); after.Object("parameters")["autoScalerMax"] != 12.0 {
		r.Errorf("a fetch after the update returns the previous state: %s", after.Raw)
	}
}

func rowFetchReturnsAllFields(r *row) {
	got := r.get(harness.InstancePath(r.createInstance()))
	if got.Text("service_id") != harness.ServiceID || got.Text("plan_id") != harness.PlanAWS || got.Text("dashboard_url") == "" ||
		got.Object("parameters")["region"] != "eu-west-1" || got.Object("metadata") == nil ||
		got.Object("maintenance_info")["version"] != maintenanceVersion(r, harness.PlanAWS) {
		r.Errorf("a field is missing or wrong: %s", got.Raw)
	}
}

func rowFetchReturnsNoSecret(r *row) {
	id := r.createInstance(fields{"context": fields{
		"platform": "x", "user_id": "marked-user", "sm_operator_credentials": fields{
			"clientid": "marked-id", "clientsecret": "marked-secret", "sm_url": "https://sm.example.com", "url": "https://tokens.example.com",
		},
	}})

	if got := r.get(harness.InstancePath(id)); strings.Contains(got.Raw, "marked") {
		r.Errorf("the response contains a secret or a user: %s", got.Raw)
	}
}

func rowFetchHintsAreIgnored(r *row) {
	id := r.createInstance()
	r.want("correct hints", r.get(harness.InstancePath(id)+"?"+ids), http.StatusOK)

	for _, wrong := range []string{"?service_id=x&plan_id=y", "?service_id=&plan_id=", "?plan_id=" + harness.PlanGCP} {
		r.want("wrong hints are ignored: "+wrong, r.get(harness.InstancePath(id)+wrong), http.StatusOK)
	}
}

func rowFetchOfDeletedInstanceIs404(r *row) {
	id := r.createInstance()
	r.deleteInstance(id)
	r.want("a deleted instance", r.get(harness.InstancePath(id)), http.StatusNotFound)
}

func rowFetchDuringDeletion(r *row) {
	id := r.createInstance()

	lift := r.hold(callRemoval)
	defer lift()

	r.want("a deletion", r.remove(id), http.StatusAccepted)
	r.want("a fetch during the deletion", r.get(harness.InstancePath(id)), http.StatusUnprocessableEntity, "ConcurrencyError")
}
