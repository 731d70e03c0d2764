package osb

import (
	"net"
	"net/http"
	"net/http/httputil"
	"slices"
	"strings"
)

func deprovisionRows() map[string]func(*row) {
	return map[string]func(*row){
		"J1": j1, "J2": j2, "J3": j3, "J4": j4, "J5": j5, "J6": j6, "J7": j7, "J8": j8, "J9": j9, "J10": j10, "J11": j11, "J12": j12,
		"J13": j13, "J14": j14, "J15": j15, "J16": j16, "J17": j17, "J18": j18,
	}
}

// empty fails the test if the tenant has a cluster.
func (r *row) empty() {
	r.Helper()

	if clusters := r.shoots(r.t, r.tenant); len(clusters) > 0 {
		r.Errorf("%d clusters are left", len(clusters))
	}
}

func j1(r *row) {
	id := r.ready()

	r.unchanged([]string{instancePath(id)}, func() {
		for _, query := range []string{
			"", "&service_id=" + serviceID, "&plan_id=" + planAWS, "&service_id=&plan_id=", "&service_id=x&plan_id=" + planAWS,
			"&service_id=" + serviceID + "&plan_id=" + planGCP, "&service_id=" + serviceID + "&plan_id=x", "&%zz",
		} {
			r.want("a deletion with "+query, r.do(call{method: http.MethodDelete, path: instancePath(id) + incomplete + query}),
				http.StatusBadRequest)
		}

		r.want("a body is not read", r.do(call{
			method: http.MethodDelete, path: instancePath(id) + incomplete, body: encode(fields{"service_id": serviceID, "plan_id": planAWS}),
		}), http.StatusBadRequest)
	})
}

func j2(r *row) {
	id := r.ready()
	r.bound(id, "b")
	r.removed(id)
	r.empty()
	r.want("its binding is gone", r.get(bindingPath(id, "b")), http.StatusNotFound)
}

// j3: to delete a cluster takes its time, so nothing may answer 200 while it is there.
func j3(r *row) {
	id := r.ready()
	operation := r.want("a deletion is not done at once", r.remove(id), http.StatusAccepted).text("operation")
	r.gone(instancePath(id), operation)
}

func j4(r *row) {
	id := r.ready()

	lift := r.hold(callRemoval)
	defer lift()

	first := r.want("a deletion", r.remove(id), http.StatusAccepted)
	for range 3 {
		if again := r.want("the same deletion", r.remove(id), http.StatusAccepted); again.Raw != first.Raw {
			r.Errorf("the same deletion has another answer: %s and %s", first.Raw, again.Raw)
		}
	}

	lift()
	r.gone(instancePath(id), first.text("operation"))
}

func j5(r *row) {
	own := r.own()
	own.want("an unknown instance", own.remove(own.newID()), http.StatusGone)

	id := own.ready()
	own.removed(id)
	own.want("a deleted instance", own.remove(id), http.StatusGone)
	own.restart(r.t)
	own.want("a deleted instance, after a restart", own.remove(id), http.StatusGone)
}

func j6(r *row) {
	id := r.ready()

	r.unchanged([]string{instancePath(id)}, func() {
		for _, query := range []string{"?", "?accepts_incomplete=false&", "?accepts_incomplete=&", "?accepts_incomplete=TRUE&"} {
			r.want("a deletion with "+query, r.do(call{method: http.MethodDelete, path: instancePath(id) + query + ids}),
				http.StatusUnprocessableEntity, "AsyncRequired")
		}
	})
}

func j7(r *row) {
	id := r.ready()

	lift := r.hold(callUpgrade)
	defer lift()

	r.want("an update", r.update(id, r.patch()), http.StatusAccepted)

	operation := r.want("a deletion is accepted whatever runs", r.remove(id), http.StatusAccepted).text("operation")
	lift()
	r.gone(instancePath(id), operation)
	r.empty()
}

// j8 deletes an instance whose creation is held at each of its calls. Where nothing holds it, it may have come to its end before.
func j8(r *row) {
	for _, held := range []string{"", callOrder, callStatus, callKubeconfig} {
		lift, ends := func() {}, []string{"failed", "succeeded"}
		if held != "" {
			lift, ends = r.hold(held), []string{"failed"}
		}

		id := r.newID()
		made := r.want("an order", r.put(id, r.order()), http.StatusAccepted).text("operation")
		removed := r.want("a deletion right after it", r.remove(id), http.StatusAccepted).text("operation")

		lift()
		r.gone(instancePath(id), removed)

		if last := r.ended(instancePath(id), made); !slices.Contains(ends, last.text("state")) {
			r.Errorf("the creation that was held at %q ended with %d %s", held, last.Status, last.Raw)
		}

		r.want("it is gone", r.get(instancePath(id)), http.StatusNotFound)
	}

	r.empty()
}

func j9(r *row) {
	operation := r.want("a deletion", r.remove(r.ready()), http.StatusAccepted).text("operation")
	if operation == "" || len(operation) > longestOperation {
		r.Errorf("the operation is %q", operation)
	}
}

func j10(r *row) {
	id := r.ready()
	made := r.bound(id, "b")
	r.removed(id)
	r.want("the binding is gone", r.get(bindingPath(id, "b")), http.StatusNotFound)
	r.want("the binding is gone", r.unbind(id, "b"), http.StatusGone)
	r.failedAccess(made)
}

// j11 has the Provisioner refuse to remove a runtime.
func j11(r *row) {
	id := r.ready()

	lift := r.refuse(callRemoval)
	defer lift()

	got := r.failed(instancePath(id), r.want("a deletion", r.remove(id), http.StatusAccepted).text("operation"))
	if _, isBool := got.Body["instance_usable"].(bool); !isBool {
		r.Errorf("it is not told whether the instance can be used: %s", got.Raw)
	}

	lift()
	r.removed(id)
	r.empty()
}

func j12(r *row) {
	lift := r.refuse(callOrder)
	defer lift()

	id := r.newID()
	r.want("an order", r.put(id, r.order()), http.StatusAccepted)
	r.failed(instancePath(id), "")
	r.removed(id)
	lift()

	bound := r.ready()
	broken := r.refuse(callKubeconfig)

	defer broken()

	r.want("a bind", r.bind(bound, "b", r.binding()), http.StatusAccepted)
	r.failed(bindingPath(bound, "b"), "")
	broken()

	if got := r.wantOneOf("an unbind", r.unbind(bound, "b"), http.StatusAccepted, http.StatusGone); got.Status == http.StatusAccepted {
		r.gone(bindingPath(bound, "b"), got.text("operation"))
	}

	r.removed(bound)
	r.empty()
}

// j13 hangs up as soon as the order is sent.
func j13(r *row) {
	id := r.newID()

	request, err := r.request(call{method: http.MethodPut, path: instancePath(id) + incomplete, body: r.order()})
	if err != nil {
		r.t.Fatal(err)
	}

	content, err := httputil.DumpRequestOut(request, true)
	if err != nil {
		r.t.Fatal(err)
	}

	connection, err := net.Dial("tcp", strings.TrimPrefix(r.url, "http://"))
	if err != nil {
		r.t.Fatal(err)
	}

	if _, err := connection.Write(content); err != nil {
		r.t.Fatal(err)
	}

	if err := connection.Close(); err != nil {
		r.t.Fatal(err)
	}

	r.until("the order to be taken", func() bool { return r.poll(instancePath(id), "").Status == http.StatusOK })
	r.removed(id)
	r.empty()
}

func j14(r *row) {
	id := r.ready()
	statuses := map[int]bool{}

	r.until("410", func() bool {
		got := r.wantOneOf("a repeated deletion", r.remove(id), http.StatusAccepted, http.StatusGone)
		statuses[got.Status] = true

		return got.Status == http.StatusGone
	})

	if !statuses[http.StatusAccepted] {
		r.Errorf("the first deletion was not accepted")
	}

	r.want("it stays", r.remove(id), http.StatusGone)
}

func j15(r *row) {
	for _, bad := range append(malformed(), r.order(fields{"plan_id": "x"}), r.order(fields{"parameters": fields{"x": 1}}),
		r.order(fields{"maintenance_info": fields{"version": "0.0.0"}})) {
		id := r.newID()
		r.refused(call{method: http.MethodPut, path: instancePath(id) + incomplete, body: bad})
		r.want("nothing was begun", r.poll(instancePath(id), ""), http.StatusNotFound)
	}

	r.empty()
}

// j16 and j18 visit every endpoint in every state; statuses and bodies of all answers are checked.
func j16(r *row) {
	id := r.newID()

	for _, call := range endpoints(id, "b") {
		call.body = r.order()
		r.do(call)
	}
}

func j17(r *row) {
	own := r.own()
	id := own.ready()
	own.restart(r.t)
	own.want("it is still there", own.get(instancePath(id)), http.StatusOK)

	if clusters := own.shoots(r.t, own.tenant); len(clusters) != 1 {
		r.Errorf("there are %d clusters", len(clusters))
	}
}

func j18(r *row) {
	id := r.ready()

	for _, each := range []string{id, r.newID()} {
		for _, call := range endpoints(each, "b") {
			for _, body := range []string{"", "{", r.order(), r.patch(), r.binding()} {
				call.body = body
				r.do(call)
			}
		}
	}
}
