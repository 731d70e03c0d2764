package osb

import (
	"net/http"
	"strings"

	"github.com/environment-broker/environment-broker/test/harness"
)

func rowUnknownFieldsAreIgnored(r *row) {
	extra := fields{"x": 1, "another_thing": fields{"a": []int{1}}, "null": nil}
	info := fields{"version": maintenanceVersion(r, harness.PlanAWS), "y": 1, "description": "z"}
	id := r.ready(extra, fields{
		"context": fields{"platform": "cloudfoundry", "x": fields{}}, "maintenance_info": info, "previous_values": extra,
		"bind_resource": extra,
	})
	r.want("a bind", r.bindNow(id, "b", r.binding(extra, fields{
		"context": extra, "bind_resource": fields{"app_guid": "a", "x": 1},
	})), http.StatusCreated)
	r.updated(id, extra, fields{"context": fields{"platform": "cloudfoundry", "x": 1}, "maintenance_info": info, "previous_values": extra})
}

// rowAnswersHaveOnlyDefinedFields calls every endpoint: do validates each response against closed schemas.
func rowAnswersHaveOnlyDefinedFields(r *row) {
	id := r.ready()

	for _, call := range endpoints(id, "b") {
		call.Body = r.order()
		r.do(call)
	}
}

func rowErrorsHaveFittingStatuses(r *row) {
	id := r.ready()

	r.want("no such path", r.get("/v2/nothing"), http.StatusNotFound)
	r.want("no such method", r.do(harness.Call{Method: http.MethodPost, Path: harness.InstancePath(id)}), http.StatusMethodNotAllowed)
	r.want("too large", r.put(r.newID(), strings.Repeat(" ", 2<<20)), http.StatusRequestEntityTooLarge)
	r.want("unreadable", r.put(r.newID(), "{"), http.StatusBadRequest)
	r.want("conflict", r.put(id, r.order(fields{"parameters": fields{}})), http.StatusConflict)
	r.want("unknown", r.get(harness.InstancePath(r.newID())), http.StatusNotFound)
	r.want("gone", r.remove(r.newID()), http.StatusGone)
}

// rowErrorCodesAreCamelCase and rowErrorsAreDescribed provoke every error that needs no back end; do checks codes and descriptions.
func rowErrorCodesAreCamelCase(r *row) {
	for _, refused := range refusals(r) {
		if code, given := refused.Body["error"]; given && code == "" {
			r.Errorf("the code is empty: %s", refused.Raw)
		}
	}
}

func rowErrorsAreDescribed(r *row) {
	for _, refused := range refusals(r) {
		if refused.Text("description") == "" {
			r.Errorf("the description is empty: %d %s", refused.Status, refused.Raw)
		}
	}
}

// refusals are responses to invalid requests of all kinds.
func refusals(r *row) []harness.Reply {
	var all []harness.Reply

	for _, bad := range []string{"{", "[]", "", `{"service_id":5}`, `{"service_id":"x","plan_id":"y"}`} {
		for _, call := range endpoints(r.newID(), "b") {
			if call.Body = bad; call.Path == "/v2/catalog" {
				call.Header = without(harness.VersionHeader)
			}

			got := r.do(call)
			if got.Status < http.StatusBadRequest {
				r.Fatalf("%s %s is no error: %d", call.Method, call.Path, got.Status)
			}

			all = append(all, got)
		}
	}

	return all
}

// rowDefinedErrorCodes provokes the defined error codes. RequiresApp is not among them: no binding needs an app.
func rowDefinedErrorCodes(r *row) {
	const (
		needsAsync = "This service plan requires client support for asynchronous service operations."
		concurrent = "The Service Broker does not support concurrent requests that mutate the same resource."
	)

	id := r.newID()

	got := r.want("AsyncRequired", r.do(harness.Call{Method: http.MethodPut, Path: harness.InstancePath(id), Body: r.order()}),
		http.StatusUnprocessableEntity, "AsyncRequired")
	if got.Text("description") != needsAsync {
		r.Errorf("clients compare the sentence letter by letter: %s", got.Raw)
	}

	r.want("MaintenanceInfoConflict", r.put(id, r.order(fields{"maintenance_info": fields{"version": "0.0.0"}})),
		http.StatusUnprocessableEntity, "MaintenanceInfoConflict")

	lift := r.hold(callOrder)
	defer lift()

	r.want("an order", r.put(id, r.order()), http.StatusAccepted)

	got = r.want("ConcurrencyError", r.update(id, r.patch()), http.StatusUnprocessableEntity, "ConcurrencyError")
	if got.Text("description") != concurrent {
		r.Errorf("clients compare the sentence letter by letter: %s", got.Raw)
	}
}

// rowRejectedRequestChangesNothing sends invalid requests to existing and unknown instances and bindings.
func rowRejectedRequestChangesNothing(r *row) {
	id, unknown := r.ready(), r.newID()
	r.bound(id, "b")

	paths := []string{harness.InstancePath(id), harness.BindingPath(id, "b"), harness.InstancePath(unknown), harness.BindingPath(unknown, "b"), harness.BindingPath(id, "c")}

	r.unchanged(paths, func() {
		for _, bad := range []string{
			"{", "[]", "null", r.order(fields{"service_id": "x"}), r.order(fields{"plan_id": "x"}),
			r.order(fields{"parameters": fields{"unknown": 1}}), r.order(fields{"maintenance_info": fields{"version": "0.0.0"}}),
			r.order(fields{"parameters": "x"}), r.order(fields{"context": 5}),
		} {
			for _, instance := range []string{id, unknown} {
				r.rejected(harness.Call{Method: http.MethodPut, Path: harness.InstancePath(instance) + harness.Incomplete, Body: bad})
				r.rejected(harness.Call{Method: http.MethodPatch, Path: harness.InstancePath(instance) + harness.Incomplete, Body: bad})
				r.rejected(harness.Call{Method: http.MethodPut, Path: harness.BindingPath(instance, "c") + harness.Incomplete, Body: bad})
			}
		}

		for _, query := range []string{"", harness.Incomplete, harness.Incomplete + "&service_id=x&plan_id=y", "?" + ids + "&accepts_incomplete=false"} {
			for _, path := range []string{harness.InstancePath(id), harness.InstancePath(unknown), harness.BindingPath(unknown, "b")} {
				r.rejected(harness.Call{Method: http.MethodDelete, Path: path + query})
			}
		}
	})

	r.want("an id that was refused can still be used", r.put(unknown, r.order()), http.StatusAccepted)
}

// rejected sends a request that has to be rejected with a 4xx.
func (r *row) rejected(call harness.Call) {
	r.Helper()

	if got := r.do(call); got.Status < http.StatusBadRequest || got.Status >= http.StatusInternalServerError {
		r.Errorf("%s %s %s: want a 4xx, got %d %s", call.Method, call.Path, call.Body, got.Status, got.Raw)
	}
}
