package osb

import (
	"net/http"
	"strings"
)

func fetchRows() map[string]func(*row) {
	return map[string]func(*row){
		"E1": e1, "E2": e2, "E3": e3, "E4": e4, "E5": e5, "E6": e6, "E7": e7, "E8": e8, "E9": e9, "E10": e10,
	}
}

func e1(r *row) {
	for _, planID := range []string{planAWS, planAzure, planGCP, planTrial} {
		id := r.ready(fields{"plan_id": planID, "parameters": nil})
		if got := r.want("a fetch", r.get(instancePath(id)), http.StatusOK); got.text("plan_id") != planID {
			r.Errorf("the plan is %q, not %s", got.text("plan_id"), planID)
		}
	}
}

func e2(r *row) { r.want("a fetch", r.get(instancePath(r.ready())), http.StatusOK) }

func e3(r *row) { r.want("an unknown instance", r.get(instancePath(r.newID())), http.StatusNotFound) }

func e4(r *row) {
	lift := r.hold(callOrder)
	defer lift()

	id := r.newID()
	r.want("an order", r.put(id, r.order()), http.StatusAccepted)
	r.want("a fetch during the creation", r.get(instancePath(id)), http.StatusNotFound)
	lift()
	r.succeeded(instancePath(id), "")

	defer r.refuse(callOrder)()

	bad := r.newID()
	r.want("an order", r.put(bad, r.order()), http.StatusAccepted)
	r.failed(instancePath(bad), "")
	r.want("a fetch of what was never made", r.get(instancePath(bad)), http.StatusNotFound)
}

func e5(r *row) {
	id := r.ready()
	before := r.get(instancePath(id)).Raw

	lift := r.hold(callUpgrade)
	defer lift()

	operation := r.want("an update", r.update(id, r.patch()), http.StatusAccepted).text("operation")
	if during := r.want("a fetch during the update", r.get(instancePath(id)), http.StatusOK); during.Raw != before {
		r.Errorf("it tells what is wanted, not what is: %s", during.Raw)
	}

	lift()
	r.succeeded(instancePath(id), operation)

	if after := r.get(instancePath(id)); after.object("parameters")["autoScalerMax"] != 12.0 {
		r.Errorf("it does not tell what has become of it: %s", after.Raw)
	}
}

func e6(r *row) {
	got := r.get(instancePath(r.ready()))
	if got.text("service_id") != serviceID || got.text("plan_id") != planAWS || got.text("dashboard_url") == "" ||
		got.object("parameters")["region"] != "eu-west-1" || got.object("metadata") == nil ||
		got.object("maintenance_info")["version"] != maintenanceVersion(r, planAWS) {
		r.Errorf("a field is missing or wrong: %s", got.Raw)
	}
}

func e7(r *row) {
	id := r.ready(fields{"context": fields{
		"platform": "x", "user_id": "marked-user", "sm_operator_credentials": fields{"clientid": "marked-id", "clientsecret": "marked-secret"},
	}})

	if got := r.get(instancePath(id)); strings.Contains(got.Raw, "marked") {
		r.Errorf("a secret or a person is told: %s", got.Raw)
	}
}

func e8(r *row) {
	id := r.ready()
	r.want("right hints", r.get(instancePath(id)+"?"+ids), http.StatusOK)

	for _, wrong := range []string{"?service_id=x&plan_id=y", "?service_id=&plan_id=", "?plan_id=" + planGCP} {
		r.want("hints are hints: "+wrong, r.get(instancePath(id)+wrong), http.StatusOK)
	}
}

func e9(r *row) {
	id := r.ready()
	r.removed(id)
	r.want("a deleted instance", r.get(instancePath(id)), http.StatusNotFound)
}

func e10(r *row) {
	id := r.ready()

	lift := r.hold(callRemoval)
	defer lift()

	r.want("a deletion", r.remove(id), http.StatusAccepted)
	r.want("a fetch meanwhile", r.get(instancePath(id)), http.StatusUnprocessableEntity, "ConcurrencyError")
}
