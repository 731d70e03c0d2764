package osb

import (
	"net/http"
	"strings"

	"github.com/environment-broker/environment-broker/test/harness"
)

// maxOperationLength is the maximum length of the `operation` field in characters, from the specification.
const maxOperationLength = 10_000

func rowProvisionNeedsID(r *row) {
	for _, path := range []string{"/v2/service_instances/", "/v2/service_instances", "/v2//service_instances/x", "/oauth//v2/service_instances/x"} {
		r.want("a provision without an ID has no route: "+path, r.do(harness.Call{Method: http.MethodPut, Path: path + harness.Incomplete, Body: r.order()}),
			http.StatusNotFound)
	}

	id := r.createInstance()
	if got := r.get(harness.InstancePath(id)); got.Text("plan_id") != harness.PlanAWS {
		r.Errorf("the fetch of the ID returns another instance: %s", got.Raw)
	}
}

// wantInvalid sends a changed order for a new instance. The broker must reject the order with 400.
func (r *row) wantInvalid(reason string, change fields) {
	r.Helper()

	id := r.newID()
	r.want(reason, r.put(id, r.order(change)), http.StatusBadRequest)
	r.want("no operation was started", r.poll(harness.InstancePath(id), ""), http.StatusNotFound)
}

func rowProvisionNeedsService(r *row) {
	for reason, value := range map[string]any{
		"missing": nil, "empty": "", "unknown": "11111111-1111-4111-8111-111111111111", "a number": 5, "an object": fields{},
		"the name": "kymaruntime", "a plan": harness.PlanAWS,
	} {
		r.wantInvalid(reason, fields{"service_id": value})
	}
}

func rowProvisionNeedsPlan(r *row) {
	for reason, value := range map[string]any{
		"missing": nil, "empty": "", "unknown": "11111111-1111-4111-8111-111111111111", "a number": 5, "an array": []int{},
		"the name": "aws", "an offering": harness.ServiceID,
	} {
		r.wantInvalid(reason, fields{"plan_id": value})
	}
}

func rowStrictModeNeedsOrganization(r *row) {
	strict := r.isolated("APP_OSB_STRICT=true")
	account := fields{"context": fields{"globalaccount_id": "g", "subaccount_id": "s"}}

	for _, required := range []string{"organization_guid", "space_guid"} {
		for _, value := range []any{nil, ""} {
			r.want("strict mode requires "+required, strict.put(strict.newID(), strict.order(account, fields{required: value})),
				http.StatusBadRequest)
		}
	}

	r.want("strict mode accepts both", strict.put(strict.newID(), strict.order()), http.StatusAccepted)

	without := fields{"organization_guid": nil, "space_guid": nil}
	r.want("without strict mode an account in the context suffices", r.put(r.newID(), r.order(account, without)), http.StatusAccepted)
	r.wantInvalid("an account is required", fields{"organization_guid": nil, "space_guid": nil, "context": nil})
}

func rowMalformedProvisionIs400(r *row) {
	for _, bad := range malformed() {
		id := r.newID()
		r.want("a malformed order: "+bad, r.put(id, bad), http.StatusBadRequest)
		r.want("no operation was started", r.poll(harness.InstancePath(id), ""), http.StatusNotFound)
	}

	for reason, change := range map[string]fields{
		"parameters are an array": {"parameters": []int{1}}, "parameters are a string": {"parameters": "x"}, "parameters are a number": {"parameters": 5},
		"context is a string": {"context": "x"}, "context is an array": {"context": []int{}}, "organization_guid is a number": {"organization_guid": 5},
		"maintenance_info is a string": {"maintenance_info": "1.0.0"}, "version is a number": {"maintenance_info": fields{"version": 1}},
	} {
		r.wantInvalid(reason, change)
	}
}

func rowProvisionParametersAreValidated(r *row) {
	for reason, parameters := range map[string]fields{
		"unknown name": {"unknown": 1}, "wrong type": {"autoScalerMax": "ten"}, "out of range": {"autoScalerMax": 100000},
		"not in the enum": {"region": "moon"}, "too large": {"autoScalerMax": 1e300}, "null": {"region": nil},
		"contradicting bounds": {"autoScalerMin": 9, "autoScalerMax": 5}, "a foreign secret": {"targetSecret": "x"},
	} {
		id := r.newID()

		got := r.want(reason, r.put(id, r.order(fields{"parameters": parameters})), http.StatusBadRequest)
		if got.Text("description") == "" {
			r.Errorf("%s: the description is missing", reason)
		}
	}
}

// rowCreatedOnlyWhenDone orders instances. The response must not be 201, because the broker creates all instances asynchronously.
func rowCreatedOnlyWhenDone(r *row) {
	for _, id := range []string{harness.PlanAWS, harness.PlanGCP} {
		got := r.want("an order is asynchronous", r.put(r.newID(), r.order(fields{"plan_id": id, "parameters": nil})), http.StatusAccepted)
		if got.Text("operation") == "" {
			r.Errorf("the response has no operation: %s", got.Raw)
		}
	}
}

func rowProvisionIs202(r *row) {
	lift := r.hold(callOrder)
	defer lift()

	id := r.newID()
	operation := r.want("an order", r.put(id, r.order()), http.StatusAccepted).Text("operation")

	if state := r.poll(harness.InstancePath(id), operation).Text("state"); state != "in progress" {
		r.Errorf("the state is %q", state)
	}
}

func rowProvisionRequiresAsync(r *row) {
	id := r.newID()

	got := r.want("a synchronous order", r.do(harness.Call{Method: http.MethodPut, Path: harness.InstancePath(id), Body: r.order()}),
		http.StatusUnprocessableEntity, "AsyncRequired")
	if got.Text("description") != asyncRequired {
		r.Errorf("clients compare the exact sentence, got %s", got.Raw)
	}

	r.want("no operation was started", r.poll(harness.InstancePath(id), ""), http.StatusNotFound)
}

func rowRepeatedProvisionReturnsOperation(r *row) {
	lift := r.hold(callOrder)
	defer lift()

	id := r.newID()
	first := r.want("an order", r.put(id, r.order()), http.StatusAccepted)

	for range 3 {
		if again := r.want("the same order", r.put(id, r.order()), http.StatusAccepted); again.Raw != first.Raw {
			r.Errorf("a repeated order returns a different response: %s and %s", first.Raw, again.Raw)
		}
	}

	if clusters := r.shoots(); len(clusters) > 1 {
		r.Errorf("%d clusters exist", len(clusters))
	}
}

func rowProvisionMaintenanceConflict(r *row) {
	version := maintenanceVersion(r, harness.PlanAWS)

	for _, other := range []string{"0.0.0", version + "-x", "x", "2" + version} {
		r.want("another version: "+other, r.put(r.newID(), r.order(fields{"maintenance_info": fields{"version": other}})),
			http.StatusUnprocessableEntity, "MaintenanceInfoConflict")
	}

	for _, same := range []fields{{"version": version}, {"version": version, "description": "anything", "x": 1}, {}, nil, {"version": ""}} {
		r.want("the version of the catalog or no version", r.put(r.newID(), r.order(fields{"maintenance_info": same})), http.StatusAccepted)
	}
}

func rowRepeatedProvisionWhenReadyIs200(r *row) {
	id := r.newID()
	first := r.want("an order", r.put(id, r.order()), http.StatusAccepted)
	r.wantSucceeded(harness.InstancePath(id), first.Text("operation"))

	for reason, body := range map[string]string{
		"the same order": r.order(),
		"parameters in a different sequence": strings.Replace(r.order(), `{"autoScalerMin":4,"region":"eu-west-1"}`,
			`{"region":"eu-west-1" , "autoScalerMin":4}`, 1),
		"another context": r.order(fields{"context": fields{"platform": "cloudfoundry", "instance_name": "renamed"}}),
	} {
		again := r.want(reason, r.put(id, body), http.StatusOK)
		if again.Text("dashboard_url") == "" || again.Text("dashboard_url") != first.Text("dashboard_url") || again.Body["operation"] != nil {
			r.Errorf("%s: the body differs: %s and %s", reason, first.Raw, again.Raw)
		}
	}

	r.want("the repeated order needs no accepts_incomplete", r.do(harness.Call{Method: http.MethodPut, Path: harness.InstancePath(id), Body: r.order()}), http.StatusOK)
}

func rowDifferentProvisionIs409(r *row) {
	lift := r.hold(callOrder)
	defer lift()

	id := r.newID()
	operation := r.want("an order", r.put(id, r.order()), http.StatusAccepted).Text("operation")

	others := map[string]fields{
		"another plan": {"plan_id": harness.PlanGCP, "parameters": nil}, "other parameters": {"parameters": fields{"region": "eu-central-1"}},
		"no parameters": {"parameters": nil}, "another organization": {"organization_guid": "other"}, "another space": {"space_guid": "other"},
	}

	for reason, other := range others {
		r.want(reason+", in progress", r.put(id, r.order(other)), http.StatusConflict)
	}

	lift()
	r.wantSucceeded(harness.InstancePath(id), operation)

	r.wantUnchanged([]string{harness.InstancePath(id)}, func() {
		for reason, other := range others {
			r.want(reason+", ready", r.put(id, r.order(other)), http.StatusConflict)
		}
	})
}

func rowDashboardURLIsReturned(r *row) {
	one, other := r.newID(), r.newID()
	first := r.want("an order", r.put(one, r.order()), http.StatusAccepted).Text("dashboard_url")
	second := r.want("an order", r.put(other, r.order()), http.StatusAccepted).Text("dashboard_url")

	if first == second || !strings.Contains(first, one) || !strings.Contains(second, other) {
		r.Errorf("dashboards are %q and %q", first, second)
	}
}

func rowProvisionOperationIsShort(r *row) {
	operation := r.want("an order", r.put(r.newID(), r.order()), http.StatusAccepted).Text("operation")
	if operation == "" || len(operation) > maxOperationLength {
		r.Errorf("the operation is %q", operation)
	}
}

func rowProvisionMetadata(r *row) {
	metadata := r.want("an order", r.put(r.newID(), r.order()), http.StatusAccepted).Object("metadata")
	if _, isObject := metadata["labels"].(map[string]any); !isObject {
		r.Errorf("labels of the metadata: %v", metadata)
	}

	if attributes, given := metadata["attributes"]; given {
		if _, isObject := attributes.(map[string]any); !isObject {
			r.Errorf("attributes of the metadata: %v", metadata)
		}
	}
}

func rowInstancesAreSeparate(r *row) {
	r.createInstance()
	r.createInstance()

	if clusters := r.shoots(); len(clusters) != 2 {
		r.Errorf("two instances have %d clusters", len(clusters))
	}
}

func rowIDMayBeReused(r *row) {
	id := r.createInstance()
	r.deleteInstance(id)
	r.wantSucceeded(harness.InstancePath(id), r.want("the same ID again", r.put(id, r.order()), http.StatusAccepted).Text("operation"))
	r.want("the instance exists", r.get(harness.InstancePath(id)), http.StatusOK)
	r.deleteInstance(id)
	r.want("the same ID with a different order", r.put(id, r.order(fields{"plan_id": harness.PlanGCP, "parameters": nil})), http.StatusAccepted)
}

func rowProvisionAfterFailureIs409(r *row) {
	lift := r.refuse(callOrder)
	defer lift()

	id := r.newID()
	r.wantFailed(harness.InstancePath(id), r.want("an order", r.put(id, r.order()), http.StatusAccepted).Text("operation"))
	lift()

	r.want("repeating the order does not report success", r.put(id, r.order()), http.StatusConflict)
	r.deleteInstance(id)
	r.want("the ID can be ordered after its deletion", r.put(id, r.order()), http.StatusAccepted)
}
