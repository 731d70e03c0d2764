package osb

import (
	"encoding/base64"
	"net/http"
	"strings"

	"github.com/environment-broker/environment-broker/test/harness"
)

// rowCloudFoundryRepeatsRequests simulates Cloud Foundry on Kubernetes: each reconciliation repeats the request, and polls only
// after a 202 response.
func rowCloudFoundryRepeatsRequests(r *row) {
	id := r.newID()
	body := r.order(fields{"context": nil, "parameters": nil})
	raw := strings.TrimSuffix(body, "}") + `,"parameters":null}`
	operations := map[string]bool{}

	order := func() harness.Reply { return r.put(id, raw) }
	reconcile := func(send func() harness.Reply, end int) {
		r.until("the last reconciliation", func() bool {
			got := r.wantOneOf("a reconciliation", send(), http.StatusAccepted, end)
			if got.Status == http.StatusAccepted {
				operations[got.Text("operation")] = true
				r.want("a poll", r.poll(harness.InstancePath(id), got.Text("operation")), http.StatusOK)
			}

			return got.Status == end
		})

		if len(operations) != 1 || operations[""] {
			r.Errorf("want one operation for all reconciliations, got %v", operations)
		}

		clear(operations)
	}

	reconcile(order, http.StatusOK)
	reconcile(func() harness.Reply { return r.remove(id) }, http.StatusGone)

	defer r.refuse(callOrder)()

	id = r.newID()
	r.want("an order", order(), http.StatusAccepted)
	r.wantFailed(harness.InstancePath(id), "")
	r.want("repeating a failed order does not report success", order(), http.StatusConflict)
}

func rowCloudFoundryServiceKeys(r *row) {
	id := r.createInstance()
	key := fields{"app_guid": "", "bind_resource": fields{"app_guid": ""}}

	r.want("a synchronous service key", r.bindNow(id, "now", r.binding(key)), http.StatusCreated)
	r.createBinding(id, "later", key)
}

func rowKubernetesServiceCatalog(r *row) {
	kubernetes := header(harness.VersionHeader, "2.14", originatorHeader, "kubernetes "+base64.StdEncoding.EncodeToString(
		[]byte(`{"username":"system:serviceaccount:catalog:controller","uid":"u","groups":["system:authenticated"],"extra":{}}`)))
	send := func(method, path, body string) harness.Reply {
		return r.do(harness.Call{Method: method, Path: path, Body: body, Header: kubernetes})
	}
	body := r.order(fields{"context": fields{"platform": "kubernetes", "namespace": "n", "clusterid": "c", "instance_name": "mine"}})

	id := r.newID()
	path := harness.InstancePath(id)
	r.wantSucceeded(path, r.want("an order", send(http.MethodPut, path+harness.Incomplete, body), http.StatusAccepted).Text("operation"))

	r.wantSucceeded(path, r.want("an update", send(http.MethodPatch, path+harness.Incomplete, r.patch(fields{"plan_id": harness.PlanAWS})),
		http.StatusAccepted).Text("operation"))

	bound := harness.BindingPath(id, "b")
	r.wantSucceeded(bound, r.want("a bind", send(http.MethodPut, bound+harness.Incomplete, r.binding()), http.StatusAccepted).Text("operation"))
	r.want("a fetch", send(http.MethodGet, bound, ""), http.StatusOK)
	r.wantGone(bound, r.want("an unbind", send(http.MethodDelete, bound+harness.Incomplete+"&"+ids, ""), http.StatusAccepted).Text("operation"))

	defer r.refuse(callOrder)()

	bad := harness.InstancePath(r.newID())
	r.wantFailed(bad, r.want("an order", send(http.MethodPut, bad+harness.Incomplete, body), http.StatusAccepted).Text("operation"))
	r.wantGone(bad, r.want("a deletion after the failure", send(http.MethodDelete, bad+harness.Incomplete+"&"+ids, ""), http.StatusAccepted).Text("operation"))
}

// rowServiceManagerVersions simulates Service Manager, which sends changes with version 2.13 and fetches with version 2.14. It
// binds without accepts_incomplete.
func rowServiceManagerVersions(r *row) {
	originator := "service-manager " + base64.StdEncoding.EncodeToString([]byte(`{"username":"somebody"}`))
	changes := header(harness.VersionHeader, "2.13", originatorHeader, originator)
	fetches := header(harness.VersionHeader, "2.14", originatorHeader, originator)

	id := r.newID()
	path, bound := harness.InstancePath(id), harness.BindingPath(id, "b")

	r.want("the catalog", r.do(harness.Call{Method: http.MethodGet, Path: "/v2/catalog", Header: fetches}), http.StatusOK)

	operation := r.want("an order", r.do(harness.Call{Method: http.MethodPut, Path: path + harness.Incomplete, Body: r.order(), Header: changes}),
		http.StatusAccepted).Text("operation")
	r.want("a poll", r.do(harness.Call{Method: http.MethodGet, Path: path + "/last_operation?operation=" + operation, Header: changes}), http.StatusOK)
	r.wantSucceeded(path, operation)
	r.want("a fetch", r.do(harness.Call{Method: http.MethodGet, Path: path, Header: fetches}), http.StatusOK)

	created := r.want("a bind", r.do(harness.Call{Method: http.MethodPut, Path: bound, Body: r.binding(), Header: changes}), http.StatusCreated)
	r.wantAccess("the credentials work", created)
	r.want("an unbind", r.do(harness.Call{Method: http.MethodDelete, Path: bound + "?" + ids, Header: changes}), http.StatusOK)

	operation = r.want("an update", r.do(harness.Call{Method: http.MethodPatch, Path: path + harness.Incomplete, Body: r.patch(), Header: changes}),
		http.StatusAccepted).Text("operation")
	r.wantSucceeded(path, operation)

	operation = r.want("a deletion", r.do(harness.Call{Method: http.MethodDelete, Path: path + harness.Incomplete + "&" + ids, Header: changes}),
		http.StatusAccepted).Text("operation")
	r.wantGone(path, operation)
}

// rowOSBCheckerEmptyObjects simulates osb-checker. It sends empty objects, which the broker treats as absent, and polls with
// the kind of the operation instead of its ID.
func rowOSBCheckerEmptyObjects(r *row) {
	r.want("an empty version header", r.do(harness.Call{Method: http.MethodGet, Path: "/v2/catalog", Header: header(harness.VersionHeader, "")}),
		http.StatusPreconditionFailed)

	empty := fields{"maintenance_info": fields{}, "bind_resource": fields{}, "previous_values": fields{}}
	id := r.newID()
	path := harness.InstancePath(id)

	r.want("an order", r.put(id, r.order(empty)), http.StatusAccepted)
	r.wantSucceeded(path, "provision")
	r.want("an update", r.update(id, r.patch(empty)), http.StatusAccepted)
	r.wantSucceeded(path, "update")
	r.want("a bind", r.bindNow(id, "b", r.binding(empty)), http.StatusCreated)
	r.want("a deletion", r.remove(id), http.StatusAccepted)
	r.wantGone(path, "deprovision")
}

// rowEdenVersion simulates the command line client eden, which sends version 2.13 with every request.
func rowEdenVersion(r *row) {
	old := header(harness.VersionHeader, "2.13")
	id := r.newID()
	path := harness.InstancePath(id)

	r.want("the catalog", r.do(harness.Call{Method: http.MethodGet, Path: "/v2/catalog", Header: old}), http.StatusOK)
	r.wantSucceeded(path, r.want("an order", r.do(harness.Call{Method: http.MethodPut, Path: path + harness.Incomplete, Body: r.order(), Header: old}),
		http.StatusAccepted).Text("operation"))
	r.want("a fetch", r.do(harness.Call{Method: http.MethodGet, Path: path, Header: old}), http.StatusOK)
	r.want("a bind", r.do(harness.Call{
		Method: http.MethodPut, Path: harness.BindingPath(id, "b") + harness.Incomplete, Body: r.binding(), Header: old,
	}), http.StatusCreated)
	r.wantGone(path, r.want("a deletion", r.do(harness.Call{Method: http.MethodDelete, Path: path + harness.Incomplete + "&" + ids, Header: old}),
		http.StatusAccepted).Text("operation"))
}
