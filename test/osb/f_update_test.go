package osb

import (
	"net/http"
	"strconv"
	"strings"
)

func updateRows() map[string]func(*row) {
	return map[string]func(*row){
		"F1": f1, "F2": f2, "F3": f3, "F4": f4, "F5": f5, "F6": f6, "F7": f7, "F8": f8, "F9": f9, "F10": f10, "F11": f11, "F12": f12,
		"F13": f13, "F14": f14, "F15": f15, "F16": f16, "F17": f17, "F18": f18, "F19": f19, "F20": f20,
	}
}

func f1(r *row) {
	id := r.ready()

	r.unchanged([]string{instancePath(id)}, func() {
		for reason, value := range map[string]any{"missing": nil, "empty": "", "unknown": "11111111-1111-4111-8111-111111111111", "a number": 5} {
			r.want(reason, r.update(id, r.patch(fields{"service_id": value})), http.StatusBadRequest)
		}
	})
}

func f2(r *row) {
	id := r.ready()

	r.unchanged([]string{instancePath(id)}, func() {
		for reason, value := range map[string]any{"unknown": "11111111-1111-4111-8111-111111111111", "a number": 5, "the service": serviceID} {
			r.want(reason, r.update(id, r.patch(fields{"plan_id": value})), http.StatusBadRequest)
		}
	})
}

func f3(r *row) {
	id := r.ready()
	r.updated(id)

	if got := r.get(instancePath(id)); got.text("plan_id") != planAWS {
		r.Errorf("the plan is another one: %s", got.Raw)
	}
}

func f4(r *row) {
	id := r.ready()

	for _, parameters := range []any{nil, fields{}} {
		before := encode(r.get(instancePath(id)).Body["parameters"])

		got := r.wantOneOf("an update without parameters", r.update(id, r.patch(fields{"parameters": parameters, "plan_id": planAWS})),
			http.StatusOK, http.StatusAccepted)
		if got.Status == http.StatusAccepted {
			r.succeeded(instancePath(id), got.text("operation"))
		}

		if after := encode(r.get(instancePath(id)).Body["parameters"]); after != before {
			r.Errorf("the parameters were %s and are %s", before, after)
		}
	}

	r.updated(id)

	if got := r.get(instancePath(id)).object("parameters"); got["region"] != "eu-west-1" || got["autoScalerMax"] != 12.0 {
		r.Errorf("parameters that were not sent have changed: %v", got)
	}
}

func f5(r *row) {
	id := r.ready()

	r.unchanged([]string{instancePath(id)}, func() {
		for _, bad := range malformed() {
			r.want("a malformed update: "+bad, r.update(id, bad), http.StatusBadRequest)
		}

		for reason, change := range map[string]fields{
			"parameters an array": {"parameters": []int{1}}, "parameters a text": {"parameters": "x"}, "context a text": {"context": "x"},
			"maintenance_info a text": {"maintenance_info": "1.0.0"},
		} {
			r.want(reason, r.update(id, r.patch(change)), http.StatusBadRequest)
		}
	})
}

// f6 changes the plan of an instance to one that it cannot become: a trial never becomes another trial's opposite.
func f6(r *row) {
	id := r.ready(fields{"plan_id": planTrial, "parameters": nil})

	r.eachPlan(func(offering offering, plan plan) {
		if plan.ID == planTrial && offering.changeable(plan) {
			r.Fatalf("trial can be changed, and this test needs a plan that cannot")
		}
	})

	r.unchanged([]string{instancePath(id)}, func() {
		r.want("a plan that cannot be changed", r.update(id, encode(fields{"service_id": serviceID, "plan_id": planAWS})),
			http.StatusUnprocessableEntity)
	})

	defer r.refuse(callOrder)()

	bad := r.newID()
	r.want("an order", r.put(bad, r.order()), http.StatusAccepted)
	r.failed(instancePath(bad), "")
	r.wantOneOf("an instance that was never made", r.update(bad, r.patch()), http.StatusUnprocessableEntity, http.StatusNotFound)
}

func f7(r *row) {
	id := r.ready(fields{"plan_id": planTrial, "parameters": nil})

	got := r.want("a plan that cannot be changed", r.update(id, encode(fields{"service_id": serviceID, "plan_id": planAWS})),
		http.StatusUnprocessableEntity, "PlanChangeNotSupported")
	if !strings.Contains(got.text("description"), "plan") && !strings.Contains(got.text("description"), "updated") {
		r.Errorf("it is not explained: %s", got.Raw)
	}
}

func f8(r *row) {
	id := r.ready()
	before := r.get(instancePath(id))

	r.contextUpdated(id, fields{"platform": "cloudfoundry", "instance_name": "renamed"})

	after := r.get(instancePath(id))
	if encode(before.Body["parameters"]) != encode(after.Body["parameters"]) || before.text("plan_id") != after.text("plan_id") ||
		encode(before.Body["maintenance_info"]) != encode(after.Body["maintenance_info"]) {
		r.Errorf("something else has changed:\nbefore %s\nafter  %s", before.Raw, after.Raw)
	}
}

// f9: what changes the cluster takes its time (F10), so only what needs no work is applied at once.
func f9(r *row) {
	id := r.ready()

	got := r.want("an update that needs no work", r.update(id, encode(fields{"service_id": serviceID, "plan_id": planAWS})), http.StatusOK)
	for field := range got.Body {
		if field != "dashboard_url" && field != "metadata" {
			r.Errorf("the field %s is none of this answer: %s", field, got.Raw)
		}
	}
}

func f10(r *row) {
	id := r.ready()

	lift := r.hold(callUpgrade)
	defer lift()

	first := r.want("an update", r.update(id, r.patch()), http.StatusAccepted)

	for range 2 {
		if again := r.want("the same update", r.update(id, r.patch()), http.StatusAccepted); again.text("operation") != first.text("operation") {
			r.Errorf("the same update is another operation: %s and %s", first.Raw, again.Raw)
		}
	}

	r.want("another update", r.update(id, r.patch(fields{"parameters": fields{"autoScalerMax": 15}})),
		http.StatusUnprocessableEntity, "ConcurrencyError")
	lift()
	r.succeeded(instancePath(id), first.text("operation"))
	r.want("the same update when it is done has nothing to do", r.update(id, r.patch()), http.StatusOK)
}

func f11(r *row) {
	id := r.ready()

	r.unchanged([]string{instancePath(id)}, func() {
		for _, query := range []string{"", "?accepts_incomplete=false", "?accepts_incomplete="} {
			got := r.want("an update that may not take its time", r.do(call{
				method: http.MethodPatch, path: instancePath(id) + query, body: r.patch(),
			}), http.StatusUnprocessableEntity, "AsyncRequired")
			if want := "This service plan requires client support for asynchronous service operations."; got.text("description") != want {
				r.Errorf("clients compare the sentence letter by letter: %s", got.Raw)
			}
		}
	})
}

func f12(r *row) {
	id := r.ready()
	version := maintenanceVersion(r, planAWS)

	r.unchanged([]string{instancePath(id)}, func() {
		for _, other := range []string{"0.0.0", version + "-x", "9" + version} {
			r.want("another version: "+other, r.update(id, r.patch(fields{"maintenance_info": fields{"version": other}})),
				http.StatusUnprocessableEntity, "MaintenanceInfoConflict")
		}
	})

	for _, same := range []fields{{"version": version, "description": "anything"}, {}} {
		got := r.wantOneOf("the version of the catalog, or none", r.update(id, encode(fields{"service_id": serviceID, "maintenance_info": same})),
			http.StatusOK, http.StatusAccepted)
		if got.Status == http.StatusAccepted {
			r.succeeded(instancePath(id), got.text("operation"))
		}
	}
}

func f13(r *row) {
	id := r.ready()

	r.unchanged([]string{instancePath(id)}, func() {
		for _, body := range []string{
			r.patch(fields{"parameters": fields{"autoScalerMax": 12, "unknown": 1}}), r.patch(fields{"plan_id": planTrial}),
			r.patch(fields{"maintenance_info": fields{"version": "0.0.0"}}), r.patch(fields{"context": 5}),
			r.patch(fields{"parameters": fields{"region": "eu-central-1", "autoScalerMax": 12}}),
		} {
			r.refused(call{method: http.MethodPatch, path: instancePath(id) + incomplete, body: body})
		}
	})

	before := r.get(instancePath(id)).Raw

	defer r.refuse(callUpgrade)()

	operation := r.want("an update", r.update(id, r.patch()), http.StatusAccepted).text("operation")
	r.failed(instancePath(id), operation)

	if after := r.get(instancePath(id)).Raw; after != before {
		r.Errorf("an update that failed is told as if it had not:\nbefore %s\nafter  %s", before, after)
	}
}

// f14: the address of an instance's dashboard names its id, so no update changes it.
func f14(r *row) {
	id := r.ready()
	before := r.get(instancePath(id)).text("dashboard_url")

	got := r.want("an update", r.update(id, r.patch()), http.StatusAccepted)
	if told, given := got.Body["dashboard_url"]; given && told != before {
		r.Errorf("another dashboard: %s", got.Raw)
	}

	r.succeeded(instancePath(id), got.text("operation"))

	if after := r.get(instancePath(id)).text("dashboard_url"); after != before {
		r.Errorf("the dashboard was %s and is %s", before, after)
	}
}

// f15: every answer is checked for the types of the hints; here they are there.
func f15(r *row) {
	id := r.ready()

	defer r.refuse(callUpgrade)()

	operation := r.want("an update", r.update(id, r.patch()), http.StatusAccepted).text("operation")
	got := r.failed(instancePath(id), operation)

	if usable, isBool := got.Body["instance_usable"].(bool); !isBool || !usable {
		r.Errorf("the cluster is as it was, and it is not said to be usable: %s", got.Raw)
	}
}

func f16(r *row) {
	got := r.want("an update", r.update(r.ready(), r.patch()), http.StatusAccepted)
	if operation := got.text("operation"); operation == "" || len(operation) > longestOperation {
		r.Errorf("the operation is %q", operation)
	}
}

func f17(r *row) {
	id := r.ready()

	r.unchanged([]string{instancePath(id)}, func() {
		for reason, parameters := range map[string]fields{
			"unknown name": {"unknown": 1}, "wrong type": {"autoScalerMax": "ten"}, "out of range": {"autoScalerMax": 100000},
			"not to be changed": {"region": "eu-central-1"}, "bounds that contradict": {"autoScalerMin": 9, "autoScalerMax": 5},
			"below what is set": {"autoScalerMax": 3}, "the credentials of others": {"targetSecret": "x"},
		} {
			r.want(reason, r.update(id, r.patch(fields{"parameters": parameters})), http.StatusBadRequest)
		}
	})
}

func f18(r *row) {
	id := r.ready()

	for i, previous := range []any{
		fields{"plan_id": planGCP}, fields{"plan_id": "x", "service_id": 5, "organization_id": nil, "space_id": []int{}}, fields{}, nil, "x", 5,
	} {
		got := r.wantOneOf("previous values of any kind", r.update(id, encode(fields{
			"service_id": serviceID, "parameters": fields{"autoScalerMax": 10 + i}, "previous_values": previous,
		})), http.StatusAccepted, http.StatusBadRequest)
		if got.Status == http.StatusAccepted {
			r.succeeded(instancePath(id), got.text("operation"))
		}
	}
}

func f19(r *row) {
	id := r.newID()
	r.want("an unknown instance", r.update(id, r.patch()), http.StatusNotFound)
	r.want("nothing was made", r.get(instancePath(id)), http.StatusNotFound)
	r.want("nothing was begun", r.poll(instancePath(id), ""), http.StatusNotFound)
}

func f20(r *row) {
	id := r.ready()

	for i, body := range []string{
		encode(fields{"service_id": serviceID}), encode(fields{"service_id": serviceID, "plan_id": planAWS}),
		encode(fields{"service_id": serviceID, "parameters": fields{}}), encode(fields{"service_id": serviceID, "parameters": nil}),
		encode(fields{"service_id": serviceID, "parameters": fields{"autoScalerMin": 4}}),
	} {
		r.want("no effect, number "+strconv.Itoa(i), r.update(id, body), http.StatusOK)
		r.want("nothing to wait for", r.do(call{method: http.MethodPatch, path: instancePath(id), body: body}), http.StatusOK)
	}
}
