package osb

import (
	"net/http"
	"strings"

	"github.com/environment-broker/environment-broker/test/harness"
)

func rowUnknownFieldsAreIgnored(r *row) {
	extra := fields{"x": 1, "another_thing": fields{"a": []int{1}}, "null": nil}
	info := fields{"version": maintenanceVersion(r, harness.PlanAWS), "y": 1, "description": "z"}
	id := r.createInstance(extra, fields{
		"context": fields{"platform": "cloudfoundry", "x": fields{}}, "maintenance_info": info, "previous_values": extra,
		"bind_resource": extra,
	})
	r.want("a bind", r.bindNow(id, "b", r.binding(extra, fields{
		"context": extra, "bind_resource": fields{"app_guid": "a", "x": 1},
	})), http.StatusCreated)
	r.updateInstance(id, extra, fields{"context": fields{"platform": "cloudfoundry", "x": 1}, "maintenance_info": info, "previous_values": extra})
}

// rowResponsesHaveOnlyDefinedFields calls every endpoint. platform.do validates each response against schemas that allow no other
// fields.
func rowResponsesHaveOnlyDefinedFields(r *row) {
	id := r.createInstance()

	for _, call := range endpoints(id, "b") {
		call.Body = r.order()
		r.do(call)
	}
}

func rowErrorsHaveFittingStatuses(r *row) {
	id := r.createInstance()

	r.want("unknown path", r.get("/v2/nothing"), http.StatusNotFound)
	r.want("unknown method", r.do(harness.Call{Method: http.MethodPost, Path: harness.InstancePath(id)}), http.StatusMethodNotAllowed)
	r.want("body too large", r.put(r.newID(), strings.Repeat(" ", 2<<20)), http.StatusRequestEntityTooLarge)
	r.want("malformed body", r.put(r.newID(), "{"), http.StatusBadRequest)
	r.want("different order", r.put(id, r.order(fields{"parameters": fields{}})), http.StatusConflict)
	r.want("unknown instance", r.get(harness.InstancePath(r.newID())), http.StatusNotFound)
	r.want("deletion of an unknown instance", r.remove(r.newID()), http.StatusGone)
}

// rowErrorCodesAreCamelCase provokes many errors. platform.do checks the form of the error codes.
func rowErrorCodesAreCamelCase(r *row) {
	for _, rejected := range rejectedRequests(r) {
		if code, given := rejected.Body["error"]; given && code == "" {
			r.Errorf("the code is empty: %s", rejected.Raw)
		}
	}
}

func rowErrorsAreDescribed(r *row) {
	for _, rejected := range rejectedRequests(r) {
		if rejected.Text("description") == "" {
			r.Errorf("the description is empty: %d %s", rejected.Status, rejected.Raw)
		}
	}
}

// rejectedRequests sends invalid requests to every endpoint and returns the responses.
func rejectedRequests(r *row) []harness.Reply {
	var all []harness.Reply

	for _, bad := range []string{"{", "[]", "", `{"service_id":5}`, `{"service_id":"x","plan_id":"y"}`} {
		for _, call := range endpoints(r.newID(), "b") {
			if call.Body = bad; call.Path == "/v2/catalog" {
				call.Header = without(harness.VersionHeader)
			}

			got := r.do(call)
			if got.Status < http.StatusBadRequest {
				r.Fatalf("%s %s: want an error, got status %d", call.Method, call.Path, got.Status)
			}

			all = append(all, got)
		}
	}

	return all
}

// Error descriptions in the wording of the specification. Client libraries compare the text.
const (
	asyncRequired    = "This service plan requires client support for asynchronous service operations."
	concurrencyError = "The Service Broker does not support concurrent requests that mutate the same resource."
)

// rowDefinedErrorCodes provokes each error code that the specification defines, except RequiresApp, because no binding requires
// an app.
func rowDefinedErrorCodes(r *row) {
	id := r.newID()

	got := r.want("AsyncRequired", r.do(harness.Call{Method: http.MethodPut, Path: harness.InstancePath(id), Body: r.order()}),
		http.StatusUnprocessableEntity, "AsyncRequired")
	if got.Text("description") != asyncRequired {
		r.Errorf("clients compare the exact sentence, got %s", got.Raw)
	}

	r.want("MaintenanceInfoConflict", r.put(id, r.order(fields{"maintenance_info": fields{"version": "0.0.0"}})),
		http.StatusUnprocessableEntity, "MaintenanceInfoConflict")

	lift := r.hold(callOrder)
	defer lift()

	r.want("an order", r.put(id, r.order()), http.StatusAccepted)

	got = r.want("ConcurrencyError", r.update(id, r.patch()), http.StatusUnprocessableEntity, "ConcurrencyError")
	if got.Text("description") != concurrencyError {
		r.Errorf("clients compare the exact sentence, got %s", got.Raw)
	}
}

// rowRejectedRequestChangesNothing sends invalid requests for existing and for unknown instances and bindings.
func rowRejectedRequestChangesNothing(r *row) {
	id, unknown := r.createInstance(), r.newID()
	r.createBinding(id, "b")

	paths := []string{harness.InstancePath(id), harness.BindingPath(id, "b"), harness.InstancePath(unknown), harness.BindingPath(unknown, "b"), harness.BindingPath(id, "c")}

	r.wantUnchanged(paths, func() {
		for _, bad := range []string{
			"{", "[]", "null", r.order(fields{"service_id": "x"}), r.order(fields{"plan_id": "x"}),
			r.order(fields{"parameters": fields{"unknown": 1}}), r.order(fields{"maintenance_info": fields{"version": "0.0.0"}}),
			r.order(fields{"parameters": "x"}), r.order(fields{"context": 5}),
		} {
			for _, instance := range []string{id, unknown} {
				r.wantRejected(harness.Call{Method: http.MethodPut, Path: harness.InstancePath(instance) + harness.Incomplete, Body: bad})
				r.wantRejected(harness.Call{Method: http.MethodPatch, Path: harness.InstancePath(instance) + harness.Incomplete, Body: bad})
				r.wantRejected(harness.Call{Method: http.MethodPut, Path: harness.BindingPath(instance, "c") + harness.Incomplete, Body: bad})
			}
		}

		for _, query := range []string{"", harness.Incomplete, harness.Incomplete + "&service_id=x&plan_id=y", "?" + ids + "&accepts_incomplete=false"} {
			for _, path := range []string{harness.InstancePath(id), harness.InstancePath(unknown), harness.BindingPath(unknown, "b")} {
				r.wantRejected(harness.Call{Method: http.MethodDelete, Path: path + query})
			}
		}
	})

	r.want("the ID of a rejected order can be used", r.put(unknown, r.order()), http.StatusAccepted)
}

func (r *row) wantRejected(call harness.Call) {
	r.Helper()

	if got := r.do(call); got.Status < http.StatusBadRequest || got.Status >= http.StatusInternalServerError {
		r.Errorf("%s %s %s: want a 4xx, got %d %s", call.Method, call.Path, call.Body, got.Status, got.Raw)
	}
}
