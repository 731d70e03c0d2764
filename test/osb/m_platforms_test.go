package osb

import (
	"encoding/base64"
	"net/http"
	"strings"
)

func platformRows() map[string]func(*row) {
	return map[string]func(*row){"M1": m1, "M2": m2, "M3": m3, "M4": m4, "M5": m5, "M6": m6}
}

// m1 plays Cloud Foundry on Kubernetes: every turn repeats the request, and only 202 makes it poll.
func m1(r *row) {
	id := r.newID()
	body := r.order(fields{"context": nil, "parameters": nil})
	raw := strings.TrimSuffix(body, "}") + `,"parameters":null}`
	operations := map[string]bool{}

	order := func() reply { return r.put(id, raw) }
	turns := func(act func() reply, end int) {
		r.until("the end of the turns", func() bool {
			got := r.wantOneOf("a turn", act(), http.StatusAccepted, end)
			if got.Status == http.StatusAccepted {
				operations[got.text("operation")] = true
				r.wantOneOf("a poll", r.poll(instancePath(id), got.text("operation")), http.StatusOK, http.StatusGone)
			}

			return got.Status == end
		})

		if len(operations) != 1 || operations[""] {
			r.Errorf("the turns were given the operations %v", operations)
		}

		clear(operations)
	}

	turns(order, http.StatusOK)
	turns(func() reply { return r.remove(id) }, http.StatusGone)

	defer r.refuse(callOrder)()

	id = r.newID()
	r.want("an order", order(), http.StatusAccepted)
	r.failed(instancePath(id), "")
	r.want("a turn after the failure is no success", order(), http.StatusConflict)
}

func m2(r *row) {
	id := r.ready()
	key := fields{"app_guid": "", "bind_resource": fields{"app_guid": ""}}

	r.want("a service key at once", r.bindNow(id, "now", r.binding(key)), http.StatusCreated)
	r.bound(id, "later", key)
}

func m3(r *row) {
	kubernetes := header(versionHeader, "2.14", originatorHeader, "kubernetes "+base64.StdEncoding.EncodeToString(
		[]byte(`{"username":"system:serviceaccount:catalog:controller","uid":"u","groups":["system:authenticated"],"extra":{}}`)))
	send := func(method, path, body string) reply {
		return r.do(call{method: method, path: path, body: body, header: kubernetes})
	}
	body := r.order(fields{"context": fields{"platform": "kubernetes", "namespace": "n", "clusterid": "c", "instance_name": "mine"}})

	id := r.newID()
	path := instancePath(id)
	r.succeeded(path, r.want("an order", send(http.MethodPut, path+incomplete, body), http.StatusAccepted).text("operation"))

	r.succeeded(path, r.want("an update", send(http.MethodPatch, path+incomplete, r.patch(fields{"plan_id": planAWS})),
		http.StatusAccepted).text("operation"))

	bound := bindingPath(id, "b")
	r.succeeded(bound, r.want("a bind", send(http.MethodPut, bound+incomplete, r.binding()), http.StatusAccepted).text("operation"))
	r.want("a fetch", send(http.MethodGet, bound, ""), http.StatusOK)
	r.gone(bound, r.want("an unbind", send(http.MethodDelete, bound+incomplete+"&"+ids, ""), http.StatusAccepted).text("operation"))

	defer r.refuse(callOrder)()

	bad := instancePath(r.newID())
	r.failed(bad, r.want("an order", send(http.MethodPut, bad+incomplete, body), http.StatusAccepted).text("operation"))
	r.gone(bad, r.want("a deletion after the failure", send(http.MethodDelete, bad+incomplete+"&"+ids, ""), http.StatusAccepted).text("operation"))
}

// m4: what changes says 2.13, and what fetches 2.14. So binds come without accepts_incomplete.
func m4(r *row) {
	originator := "service-manager " + base64.StdEncoding.EncodeToString([]byte(`{"username":"somebody"}`))
	changes := header(versionHeader, "2.13", originatorHeader, originator)
	fetches := header(versionHeader, "2.14", originatorHeader, originator)

	id := r.newID()
	path, bound := instancePath(id), bindingPath(id, "b")

	r.want("the catalog", r.do(call{method: http.MethodGet, path: "/v2/catalog", header: fetches}), http.StatusOK)

	operation := r.want("an order", r.do(call{method: http.MethodPut, path: path + incomplete, body: r.order(), header: changes}),
		http.StatusAccepted).text("operation")
	r.want("a poll", r.do(call{method: http.MethodGet, path: path + "/last_operation?operation=" + operation, header: changes}), http.StatusOK)
	r.succeeded(path, operation)
	r.want("a fetch", r.do(call{method: http.MethodGet, path: path, header: fetches}), http.StatusOK)

	made := r.want("a bind", r.do(call{method: http.MethodPut, path: bound, body: r.binding(), header: changes}), http.StatusCreated)
	r.reaches("the credentials work", made)
	r.want("an unbind", r.do(call{method: http.MethodDelete, path: bound + "?" + ids, header: changes}), http.StatusOK)

	operation = r.want("an update", r.do(call{method: http.MethodPatch, path: path + incomplete, body: r.patch(), header: changes}),
		http.StatusAccepted).text("operation")
	r.succeeded(path, operation)

	operation = r.want("a deletion", r.do(call{method: http.MethodDelete, path: path + incomplete + "&" + ids, header: changes}),
		http.StatusAccepted).text("operation")
	r.gone(path, operation)
}

// m5: empty objects count as absent, and polls name the kind of the operation.
func m5(r *row) {
	r.want("an empty version header", r.do(call{method: http.MethodGet, path: "/v2/catalog", header: header(versionHeader, "")}),
		http.StatusPreconditionFailed)

	empty := fields{"maintenance_info": fields{}, "bind_resource": fields{}, "previous_values": fields{}}
	id := r.newID()
	path := instancePath(id)

	r.want("an order", r.put(id, r.order(empty)), http.StatusAccepted)
	r.succeeded(path, "provision")
	r.want("an update", r.update(id, r.patch(empty)), http.StatusAccepted)
	r.succeeded(path, "update")
	r.want("a bind", r.bindNow(id, "b", r.binding(empty)), http.StatusCreated)
	r.want("a deletion", r.remove(id), http.StatusAccepted)
	r.gone(path, "deprovision")
}

// m6: what Cloud Foundry checks of a catalog is in rows B; eden sends 2.13 with everything.
func m6(r *row) {
	old := header(versionHeader, "2.13")
	id := r.newID()
	path := instancePath(id)

	r.want("the catalog", r.do(call{method: http.MethodGet, path: "/v2/catalog", header: old}), http.StatusOK)
	r.succeeded(path, r.want("an order", r.do(call{method: http.MethodPut, path: path + incomplete, body: r.order(), header: old}),
		http.StatusAccepted).text("operation"))
	r.want("a fetch", r.do(call{method: http.MethodGet, path: path, header: old}), http.StatusOK)
	r.want("a bind", r.do(call{
		method: http.MethodPut, path: bindingPath(id, "b") + incomplete, body: r.binding(), header: old,
	}), http.StatusCreated)
	r.gone(path, r.want("a deletion", r.do(call{method: http.MethodDelete, path: path + incomplete + "&" + ids, header: old}),
		http.StatusAccepted).text("operation"))
}
