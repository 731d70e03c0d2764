package osb

import (
	"net/http"
	"strings"
)

func provisionRows() map[string]func(*row) {
	return map[string]func(*row){
		"D1": d1, "D2": d2, "D3": d3, "D4": d4, "D5": d5, "D6": d6, "D7": d7, "D8": d8, "D9": d9, "D10": d10, "D11": d11, "D12": d12,
		"D13": d13, "D14": d14, "D15": d15, "D16": d16, "D17": d17, "D18": d18, "D19": d19,
	}
}

// longestOperation is how long the value of an operation may be, in characters.
const longestOperation = 10_000

func d1(r *row) {
	for _, nowhere := range []string{"/v2/service_instances/", "/v2/service_instances", "/v2//service_instances/x", "/oauth//v2/service_instances/x"} {
		r.want("there is no such path: "+nowhere, r.do(call{method: http.MethodPut, path: nowhere + incomplete, body: r.order()}),
			http.StatusNotFound)
	}

	id := r.ready()
	if got := r.get(instancePath(id)); got.text("plan_id") != planAWS {
		r.Errorf("the id is not the key of the instance: %s", got.Raw)
	}
}

// invalid orders a new instance with a change that has to be refused by 400.
func (r *row) invalid(reason string, change fields) {
	r.Helper()

	id := r.newID()
	r.want(reason, r.put(id, r.order(change)), http.StatusBadRequest)
	r.want("nothing was begun", r.poll(instancePath(id), ""), http.StatusNotFound)
}

func d2(r *row) {
	for reason, value := range map[string]any{
		"missing": nil, "empty": "", "unknown": "11111111-1111-4111-8111-111111111111", "a number": 5, "an object": fields{},
		"the name": "kymaruntime", "a plan": planAWS,
	} {
		r.invalid(reason, fields{"service_id": value})
	}
}

func d3(r *row) {
	for reason, value := range map[string]any{
		"missing": nil, "empty": "", "unknown": "11111111-1111-4111-8111-111111111111", "a number": 5, "an array": []int{},
		"the name": "aws", "an offering": serviceID,
	} {
		r.invalid(reason, fields{"plan_id": value})
	}
}

func d4(r *row) {
	strict := r.own("APP_OSB_STRICT=true")
	account := fields{"context": fields{"globalaccount_id": "g", "subaccount_id": "s"}}

	for _, required := range []string{"organization_guid", "space_guid"} {
		for _, value := range []any{nil, ""} {
			r.want("strict mode insists on "+required, strict.put(strict.newID(), strict.order(account, fields{required: value})),
				http.StatusBadRequest)
		}
	}

	r.want("with both", strict.put(strict.newID(), strict.order()), http.StatusAccepted)

	without := fields{"organization_guid": nil, "space_guid": nil}
	r.want("else an account in the context is enough", r.put(r.newID(), r.order(account, without)), http.StatusAccepted)
	r.invalid("somebody has to be known", fields{"organization_guid": nil, "space_guid": nil, "context": nil})
}

func d5(r *row) {
	for _, bad := range malformed() {
		id := r.newID()
		r.want("a malformed order: "+bad, r.put(id, bad), http.StatusBadRequest)
		r.want("nothing was begun", r.poll(instancePath(id), ""), http.StatusNotFound)
	}

	for reason, change := range map[string]fields{
		"parameters an array": {"parameters": []int{1}}, "parameters a text": {"parameters": "x"}, "parameters a number": {"parameters": 5},
		"context a text": {"context": "x"}, "context an array": {"context": []int{}}, "a number for a GUID": {"organization_guid": 5},
		"maintenance_info a text": {"maintenance_info": "1.0.0"}, "its version a number": {"maintenance_info": fields{"version": 1}},
	} {
		r.invalid(reason, change)
	}
}

func d6(r *row) {
	for reason, parameters := range map[string]fields{
		"unknown name": {"unknown": 1}, "wrong type": {"autoScalerMax": "ten"}, "out of range": {"autoScalerMax": 100000},
		"not one of the values": {"region": "moon"}, "too large for a number": {"autoScalerMax": 1e300}, "null": {"region": nil},
		"bounds that contradict": {"autoScalerMin": 9, "autoScalerMax": 5}, "the credentials of others": {"targetSecret": "x"},
	} {
		id := r.newID()

		got := r.want(reason, r.put(id, r.order(fields{"parameters": parameters})), http.StatusBadRequest)
		if got.text("description") == "" {
			r.Errorf("%s is not explained", reason)
		}
	}
}

// d7: a cluster takes its time. No plan is done at once, so nothing may answer 201.
func d7(r *row) {
	for _, id := range []string{planAWS, planGCP} {
		got := r.want("an order is not done at once", r.put(r.newID(), r.order(fields{"plan_id": id, "parameters": nil})), http.StatusAccepted)
		if got.text("operation") == "" {
			r.Errorf("there is nothing to poll for: %s", got.Raw)
		}
	}
}

func d8(r *row) {
	lift := r.hold(callOrder)
	defer lift()

	id := r.newID()
	operation := r.want("an order", r.put(id, r.order()), http.StatusAccepted).text("operation")

	if state := r.poll(instancePath(id), operation).text("state"); state != "in progress" {
		r.Errorf("it is %q", state)
	}
}

func d9(r *row) {
	id := r.newID()

	got := r.want("an order that may not take its time", r.do(call{method: http.MethodPut, path: instancePath(id), body: r.order()}),
		http.StatusUnprocessableEntity, "AsyncRequired")
	if want := "This service plan requires client support for asynchronous service operations."; got.text("description") != want {
		r.Errorf("clients compare the sentence letter by letter: %s", got.Raw)
	}

	r.want("nothing was begun", r.poll(instancePath(id), ""), http.StatusNotFound)
}

func d10(r *row) {
	lift := r.hold(callOrder)
	defer lift()

	id := r.newID()
	first := r.want("an order", r.put(id, r.order()), http.StatusAccepted)

	for range 3 {
		if again := r.want("the same order", r.put(id, r.order()), http.StatusAccepted); again.Raw != first.Raw {
			r.Errorf("the same order has another answer: %s and %s", first.Raw, again.Raw)
		}
	}

	if clusters := r.shoots(r.t, r.tenant); len(clusters) > 1 {
		r.Errorf("%d clusters are made", len(clusters))
	}
}

func d11(r *row) {
	version := maintenanceVersion(r, planAWS)

	for _, other := range []string{"0.0.0", version + "-x", "x", "2" + version} {
		r.want("another version: "+other, r.put(r.newID(), r.order(fields{"maintenance_info": fields{"version": other}})),
			http.StatusUnprocessableEntity, "MaintenanceInfoConflict")
	}

	for _, same := range []fields{{"version": version}, {"version": version, "description": "anything", "x": 1}, {}, nil, {"version": ""}} {
		r.want("the version of the catalog, or none", r.put(r.newID(), r.order(fields{"maintenance_info": same})), http.StatusAccepted)
	}
}

func d12(r *row) {
	id := r.newID()
	first := r.want("an order", r.put(id, r.order()), http.StatusAccepted)
	r.succeeded(instancePath(id), first.text("operation"))

	for reason, body := range map[string]string{
		"the same order": r.order(),
		"parameters in another order": strings.Replace(r.order(), `{"autoScalerMin":4,"region":"eu-west-1"}`,
			`{"region":"eu-west-1" , "autoScalerMin":4}`, 1),
		"another context": r.order(fields{"context": fields{"platform": "cloudfoundry", "instance_name": "renamed"}}),
	} {
		again := r.want(reason, r.put(id, body), http.StatusOK)
		if again.text("dashboard_url") == "" || again.text("dashboard_url") != first.text("dashboard_url") || again.Body["operation"] != nil {
			r.Errorf("%s: the body differs: %s and %s", reason, first.Raw, again.Raw)
		}
	}

	r.want("it needs no time", r.do(call{method: http.MethodPut, path: instancePath(id), body: r.order()}), http.StatusOK)
}

func d13(r *row) {
	lift := r.hold(callOrder)
	defer lift()

	id := r.newID()
	operation := r.want("an order", r.put(id, r.order()), http.StatusAccepted).text("operation")

	others := map[string]fields{
		"another plan": {"plan_id": planGCP, "parameters": nil}, "other parameters": {"parameters": fields{"region": "eu-central-1"}},
		"no parameters": {"parameters": nil}, "another organization": {"organization_guid": "other"}, "another space": {"space_guid": "other"},
	}

	for reason, other := range others {
		r.want(reason+", in progress", r.put(id, r.order(other)), http.StatusConflict)
	}

	lift()
	r.succeeded(instancePath(id), operation)

	r.unchanged([]string{instancePath(id)}, func() {
		for reason, other := range others {
			r.want(reason+", ready", r.put(id, r.order(other)), http.StatusConflict)
		}
	})
}

func d14(r *row) {
	one, other := r.newID(), r.newID()
	first := r.want("an order", r.put(one, r.order()), http.StatusAccepted).text("dashboard_url")
	second := r.want("an order", r.put(other, r.order()), http.StatusAccepted).text("dashboard_url")

	if first == second || !strings.Contains(first, one) || !strings.Contains(second, other) {
		r.Errorf("dashboards are %q and %q", first, second)
	}
}

func d15(r *row) {
	operation := r.want("an order", r.put(r.newID(), r.order()), http.StatusAccepted).text("operation")
	if operation == "" || len(operation) > longestOperation {
		r.Errorf("the operation is %q", operation)
	}
}

func d16(r *row) {
	metadata := r.want("an order", r.put(r.newID(), r.order()), http.StatusAccepted).object("metadata")
	if _, isObject := metadata["labels"].(map[string]any); !isObject {
		r.Errorf("labels of the metadata: %v", metadata)
	}

	if attributes, given := metadata["attributes"]; given {
		if _, isObject := attributes.(map[string]any); !isObject {
			r.Errorf("attributes of the metadata: %v", metadata)
		}
	}
}

func d17(r *row) {
	r.ready()
	r.ready()

	if clusters := r.shoots(r.t, r.tenant); len(clusters) != 2 {
		r.Errorf("two instances have %d clusters", len(clusters))
	}
}

func d18(r *row) {
	id := r.ready()
	r.removed(id)
	r.succeeded(instancePath(id), r.want("the id again", r.put(id, r.order()), http.StatusAccepted).text("operation"))
	r.want("it is there", r.get(instancePath(id)), http.StatusOK)
	r.removed(id)
	r.want("the id again, ordered otherwise", r.put(id, r.order(fields{"plan_id": planGCP, "parameters": nil})), http.StatusAccepted)
}

func d19(r *row) {
	lift := r.refuse(callOrder)
	defer lift()

	id := r.newID()
	r.failed(instancePath(id), r.want("an order", r.put(id, r.order()), http.StatusAccepted).text("operation"))
	lift()

	r.want("the same order is no success", r.put(id, r.order()), http.StatusConflict)
	r.removed(id)
	r.want("after its deletion it can be ordered", r.put(id, r.order()), http.StatusAccepted)
}
