package osb

import (
	"net/http"
	"strconv"
	"strings"

	"github.com/environment-broker/environment-broker/test/harness"
)

func rowUpdateNeedsService(r *row) {
	id := r.createInstance()

	r.wantUnchanged([]string{harness.InstancePath(id)}, func() {
		for reason, value := range map[string]any{"missing": nil, "empty": "", "unknown": "11111111-1111-4111-8111-111111111111", "a number": 5} {
			r.want(reason, r.update(id, r.patch(fields{"service_id": value})), http.StatusBadRequest)
		}
	})
}

func rowUpdateNeedsKnownPlan(r *row) {
	id := r.createInstance()

	r.wantUnchanged([]string{harness.InstancePath(id)}, func() {
		for reason, value := range map[string]any{"unknown": "11111111-1111-4111-8111-111111111111", "a number": 5, "the service": harness.ServiceID} {
			r.want(reason, r.update(id, r.patch(fields{"plan_id": value})), http.StatusBadRequest)
		}
	})
}

func rowUpdateKeepsPlan(r *row) {
	id := r.createInstance()
	r.updateInstance(id)

	if got := r.get(harness.InstancePath(id)); got.Text("plan_id") != harness.PlanAWS {
		r.Errorf("the update changed the plan: %s", got.Raw)
	}
}

func rowUpdateKeepsParameters(r *row) {
	id := r.createInstance()

	for _, parameters := range []any{nil, fields{}} {
		before := encode(r.get(harness.InstancePath(id)).Body["parameters"])

		got := r.wantOneOf("an update without parameters", r.update(id, r.patch(fields{"parameters": parameters, "plan_id": harness.PlanAWS})),
			http.StatusOK, http.StatusAccepted)
		if got.Status == http.StatusAccepted {
			r.wantSucceeded(harness.InstancePath(id), got.Text("operation"))
		}

		if after := encode(r.get(harness.InstancePath(id)).Body["parameters"]); after != before {
			r.Errorf("the parameters changed from %s to %s", before, after)
		}
	}

	r.updateInstance(id)

	if got := r.get(harness.InstancePath(id)).Object("parameters"); got["region"] != "eu-west-1" || got["autoScalerMax"] != 12.0 {
		r.Errorf("omitted parameters changed: %v", got)
	}
}

func rowMalformedUpdateIs400(r *row) {
	id := r.createInstance()

	r.wantUnchanged([]string{harness.InstancePath(id)}, func() {
		for _, bad := range malformed() {
			r.want("a malformed update: "+bad, r.update(id, bad), http.StatusBadRequest)
		}

		for reason, change := range map[string]fields{
			"parameters are an array": {"parameters": []int{1}}, "parameters are a string": {"parameters": "x"}, "context is a string": {"context": "x"},
			"maintenance_info is a string": {"maintenance_info": "1.0.0"},
		} {
			r.want(reason, r.update(id, r.patch(change)), http.StatusBadRequest)
		}
	})
}

// rowUnsupportedChangeIs422 tries to change the plan of an instance whose plan is fixed, and to update an instance whose creation
// failed.
func rowUnsupportedChangeIs422(r *row) {
	id := r.createInstance(fields{"plan_id": harness.PlanTrial, "parameters": nil})

	r.eachPlan(func(offering offering, plan plan) {
		if plan.ID == harness.PlanTrial && offering.changeable(plan) {
			r.Fatalf("plan trial can be changed, but this test needs a plan that cannot be changed")
		}
	})

	r.wantUnchanged([]string{harness.InstancePath(id)}, func() {
		r.want("a plan that cannot be changed", r.update(id, encode(fields{"service_id": harness.ServiceID, "plan_id": harness.PlanAWS})),
			http.StatusUnprocessableEntity)
	})

	defer r.refuse(callOrder)()

	bad := r.newID()
	r.want("an order", r.put(bad, r.order()), http.StatusAccepted)
	r.wantFailed(harness.InstancePath(bad), "")
	r.wantOneOf("an update after a failed creation", r.update(bad, r.patch()), http.StatusUnprocessableEntity, http.StatusNotFound)
}

func rowPlanChangeIsExplained(r *row) {
	id := r.createInstance(fields{"plan_id": harness.PlanTrial, "parameters": nil})

	got := r.want("a plan that cannot be changed", r.update(id, encode(fields{"service_id": harness.ServiceID, "plan_id": harness.PlanAWS})),
		http.StatusUnprocessableEntity, "PlanChangeNotSupported")
	if !strings.Contains(got.Text("description"), "plan") && !strings.Contains(got.Text("description"), "updated") {
		r.Errorf("the description does not explain the error: %s", got.Raw)
	}
}

func rowContextUpdate(r *row) {
	id := r.createInstance()
	before := r.get(harness.InstancePath(id))

	r.updateContext(id, fields{"platform": "cloudfoundry", "instance_name": "renamed"})

	after := r.get(harness.InstancePath(id))
	if encode(before.Body["parameters"]) != encode(after.Body["parameters"]) || before.Text("plan_id") != after.Text("plan_id") ||
		encode(before.Body["maintenance_info"]) != encode(after.Body["maintenance_info"]) {
		r.Errorf("the update of the context had another effect:\nbefore %s\nafter  %s", before.Raw, after.Raw)
	}
}

// rowAppliedUpdateIs200 sends an update that changes nothing. Updates that change the cluster are asynchronous and have rows of
// their own.
func rowAppliedUpdateIs200(r *row) {
	id := r.createInstance()

	got := r.want("an update that needs no work", r.update(id, encode(fields{"service_id": harness.ServiceID, "plan_id": harness.PlanAWS})), http.StatusOK)
	for field := range got.Body {
		if field != "dashboard_url" && field != "metadata" {
			r.Errorf("unexpected field %s in the response: %s", field, got.Raw)
		}
	}
}

func rowRepeatedUpdateReturnsOperation(r *row) {
	id := r.createInstance()

	lift := r.hold(callUpgrade)
	defer lift()

	first := r.want("an update", r.update(id, r.patch()), http.StatusAccepted)

	for range 2 {
		if again := r.want("the same update", r.update(id, r.patch()), http.StatusAccepted); again.Text("operation") != first.Text("operation") {
			r.Errorf("a repeated update returns a different operation: %s and %s", first.Raw, again.Raw)
		}
	}

	r.want("a different update", r.update(id, r.patch(fields{"parameters": fields{"autoScalerMax": 15}})),
		http.StatusUnprocessableEntity, "ConcurrencyError")
	lift()
	r.wantSucceeded(harness.InstancePath(id), first.Text("operation"))
	r.want("the same update after the first one has ended", r.update(id, r.patch()), http.StatusOK)
}

func rowUpdateRequiresAsync(r *row) {
	id := r.createInstance()

	r.wantUnchanged([]string{harness.InstancePath(id)}, func() {
		for _, query := range []string{"", "?accepts_incomplete=false", "?accepts_incomplete="} {
			got := r.want("a synchronous update", r.do(harness.Call{
				Method: http.MethodPatch, Path: harness.InstancePath(id) + query, Body: r.patch(),
			}), http.StatusUnprocessableEntity, "AsyncRequired")
			if got.Text("description") != asyncRequired {
				r.Errorf("clients compare the exact sentence, got %s", got.Raw)
			}
		}
	})
}

func rowUpdateMaintenanceConflict(r *row) {
	id := r.createInstance()
	version := maintenanceVersion(r, harness.PlanAWS)

	r.wantUnchanged([]string{harness.InstancePath(id)}, func() {
		for _, other := range []string{"0.0.0", version + "-x", "9" + version} {
			r.want("another version: "+other, r.update(id, r.patch(fields{"maintenance_info": fields{"version": other}})),
				http.StatusUnprocessableEntity, "MaintenanceInfoConflict")
		}
	})

	for _, same := range []fields{{"version": version, "description": "anything"}, {}} {
		got := r.wantOneOf("the version of the catalog or no version", r.update(id, encode(fields{"service_id": harness.ServiceID, "maintenance_info": same})),
			http.StatusOK, http.StatusAccepted)
		if got.Status == http.StatusAccepted {
			r.wantSucceeded(harness.InstancePath(id), got.Text("operation"))
		}
	}
}

func rowRejectedUpdateAppliesNothing(r *row) {
	id := r.createInstance()

	r.wantUnchanged([]string{harness.InstancePath(id)}, func() {
		for _, body := range []string{
			r.patch(fields{"parameters": fields{"autoScalerMax": 12, "unknown": 1}}), r.patch(fields{"plan_id": harness.PlanTrial}),
			r.patch(fields{"maintenance_info": fields{"version": "0.0.0"}}), r.patch(fields{"context": 5}),
			r.patch(fields{"parameters": fields{"region": "eu-central-1", "autoScalerMax": 12}}),
		} {
			r.wantRejected(harness.Call{Method: http.MethodPatch, Path: harness.InstancePath(id) + harness.Incomplete, Body: body})
		}
	})

	before := r.get(harness.InstancePath(id)).Raw

	defer r.refuse(callUpgrade)()

	operation := r.want("an update", r.update(id, r.patch()), http.StatusAccepted).Text("operation")
	r.wantFailed(harness.InstancePath(id), operation)

	if after := r.get(harness.InstancePath(id)).Raw; after != before {
		r.Errorf("a failed update changed the instance:\nbefore %s\nafter  %s", before, after)
	}
}

// rowUpdateReturnsDashboardURL checks that an update does not change the dashboard URL, which depends only on the instance ID.
func rowUpdateReturnsDashboardURL(r *row) {
	id := r.createInstance()
	before := r.get(harness.InstancePath(id)).Text("dashboard_url")

	got := r.want("an update", r.update(id, r.patch()), http.StatusAccepted)
	if url, given := got.Body["dashboard_url"]; given && url != before {
		r.Errorf("the update changed dashboard_url: %s", got.Raw)
	}

	r.wantSucceeded(harness.InstancePath(id), got.Text("operation"))

	if after := r.get(harness.InstancePath(id)).Text("dashboard_url"); after != before {
		r.Errorf("dashboard_url changed from %s to %s", before, after)
	}
}

// rowUsabilityHintsAreBooleans makes an update fail, so that the response has usability hints. platform.do checks their types.
func rowUsabilityHintsAreBooleans(r *row) {
	id := r.createInstance()

	defer r.refuse(callUpgrade)()

	operation := r.want("an update", r.update(id, r.patch()), http.StatusAccepted).Text("operation")
	got := r.wantFailed(harness.InstancePath(id), operation)

	if usable, isBool := got.Body["instance_usable"].(bool); !isBool || !usable {
		r.Errorf("a failed update left the cluster usable, but instance_usable is missing or false: %s", got.Raw)
	}
}

func rowUpdateOperationIsNotEmpty(r *row) {
	got := r.want("an update", r.update(r.createInstance(), r.patch()), http.StatusAccepted)
	if operation := got.Text("operation"); operation == "" || len(operation) > maxOperationLength {
		r.Errorf("the operation is %q", operation)
	}
}

func rowUpdateParametersAreValidated(r *row) {
	id := r.createInstance()

	r.wantUnchanged([]string{harness.InstancePath(id)}, func() {
		for reason, parameters := range map[string]fields{
			"unknown name": {"unknown": 1}, "wrong type": {"autoScalerMax": "ten"}, "out of range": {"autoScalerMax": 100000},
			"immutable": {"region": "us-east-1"}, "contradicting bounds": {"autoScalerMin": 9, "autoScalerMax": 5},
			"below autoScalerMin": {"autoScalerMax": 3}, "a foreign secret": {"targetSecret": "x"},
		} {
			r.want(reason, r.update(id, r.patch(fields{"parameters": parameters})), http.StatusBadRequest)
		}

		for reason, parameters := range map[string]fields{
			"the actual value of a parameter that is fixed at creation":       {"networking": fields{"nodes": "10.250.0.0/16"}},
			"the actual value of another parameter that is fixed at creation": {"purpose": "development"},
		} {
			r.want(reason, r.update(id, r.patch(fields{"parameters": parameters})), http.StatusOK)
		}
	})
}

func rowPreviousValuesAreIgnored(r *row) {
	id := r.createInstance()

	for _, previous := range []any{"", "x", 0, 5, true, []any{}} {
		r.want("previous values that are not an object", r.update(id, encode(fields{
			"service_id": harness.ServiceID, "previous_values": previous,
		})), http.StatusBadRequest)
	}

	for i, previous := range []any{
		fields{"plan_id": harness.PlanGCP}, fields{"plan_id": "x", "service_id": 5, "organization_id": nil, "space_id": []int{}}, fields{}, nil,
	} {
		got := r.want("previous values with arbitrary contents", r.update(id, encode(fields{
			"service_id": harness.ServiceID, "parameters": fields{"autoScalerMax": 10 + i}, "previous_values": previous,
		})), http.StatusAccepted)
		if got.Status == http.StatusAccepted {
			r.wantSucceeded(harness.InstancePath(id), got.Text("operation"))
		}
	}
}

func rowUpdateOfUnknownInstanceIs404(r *row) {
	id := r.newID()
	r.want("an unknown instance", r.update(id, r.patch()), http.StatusNotFound)
	r.want("nothing was created", r.get(harness.InstancePath(id)), http.StatusNotFound)
	r.want("no operation was started", r.poll(harness.InstancePath(id), ""), http.StatusNotFound)
}

func rowUpdateWithoutEffectIs200(r *row) {
	id := r.createInstance()

	for i, body := range []string{
		encode(fields{"service_id": harness.ServiceID}), encode(fields{"service_id": harness.ServiceID, "plan_id": harness.PlanAWS}),
		encode(fields{"service_id": harness.ServiceID, "parameters": fields{}}), encode(fields{"service_id": harness.ServiceID, "parameters": nil}),
		encode(fields{"service_id": harness.ServiceID, "parameters": fields{"autoScalerMin": 4}}),
	} {
		r.want("an update without effect, case "+strconv.Itoa(i), r.update(id, body), http.StatusOK)
		r.want("an update without effect needs no accepts_incomplete", r.do(harness.Call{Method: http.MethodPatch, Path: harness.InstancePath(id), Body: body}), http.StatusOK)
	}
}
