package osb

import (
	"net"
	"net/http"
	"net/http/httputil"
	"slices"
	"strings"

	"github.com/environment-broker/environment-broker/test/harness"
)

func (r *row) wantNoClusters() {
	r.Helper()

	if clusters := r.shoots(); len(clusters) > 0 {
		r.Errorf("want no clusters, got %d", len(clusters))
	}
}

func rowDeprovisionNeedsServiceAndPlan(r *row) {
	id := r.createInstance()

	r.wantUnchanged([]string{harness.InstancePath(id)}, func() {
		for _, query := range []string{
			"", "&service_id=" + harness.ServiceID, "&plan_id=" + harness.PlanAWS, "&service_id=&plan_id=", "&service_id=x&plan_id=" + harness.PlanAWS,
			"&service_id=" + harness.ServiceID + "&plan_id=" + harness.PlanGCP, "&service_id=" + harness.ServiceID + "&plan_id=x", "&%zz",
		} {
			r.want("a deletion with "+query, r.do(harness.Call{Method: http.MethodDelete, Path: harness.InstancePath(id) + harness.Incomplete + query}),
				http.StatusBadRequest)
		}

		r.want("the body is ignored", r.do(harness.Call{
			Method: http.MethodDelete, Path: harness.InstancePath(id) + harness.Incomplete, Body: encode(fields{"service_id": harness.ServiceID, "plan_id": harness.PlanAWS}),
		}), http.StatusBadRequest)
	})
}

func rowDeprovisionLeavesNothing(r *row) {
	id := r.createInstance()
	r.createBinding(id, "b")
	r.deleteInstance(id)
	r.wantNoClusters()
	r.want("the binding is gone", r.get(harness.BindingPath(id, "b")), http.StatusNotFound)
}

// rowDeprovisionIs202 deletes an instance. The response must not be 200 while the cluster still exists.
func rowDeprovisionIs202(r *row) {
	id := r.createInstance()
	operation := r.want("a deletion is asynchronous", r.remove(id), http.StatusAccepted).Text("operation")
	r.wantGone(harness.InstancePath(id), operation)
}

func rowRepeatedDeprovisionReturnsOperation(r *row) {
	id := r.createInstance()

	lift := r.hold(callRemoval)
	defer lift()

	first := r.want("a deletion", r.remove(id), http.StatusAccepted)
	for range 3 {
		if again := r.want("the same deletion", r.remove(id), http.StatusAccepted); again.Raw != first.Raw {
			r.Errorf("a repeated deletion returns a different response: %s and %s", first.Raw, again.Raw)
		}
	}

	lift()
	r.wantGone(harness.InstancePath(id), first.Text("operation"))
}

func rowDeprovisionOfUnknownInstanceIs410(r *row) {
	isolated := r.isolated()
	isolated.want("an unknown instance", isolated.remove(isolated.newID()), http.StatusGone)

	id := isolated.createInstance()
	isolated.deleteInstance(id)
	isolated.want("a deleted instance", isolated.remove(id), http.StatusGone)
	isolated.RestartBroker()
	isolated.want("a deleted instance, after a restart", isolated.remove(id), http.StatusGone)
}

func rowDeprovisionRequiresAsync(r *row) {
	id := r.createInstance()

	r.wantUnchanged([]string{harness.InstancePath(id)}, func() {
		for _, query := range []string{"?", "?accepts_incomplete=false&", "?accepts_incomplete=&", "?accepts_incomplete=TRUE&"} {
			r.want("a deletion with "+query, r.do(harness.Call{Method: http.MethodDelete, Path: harness.InstancePath(id) + query + ids}),
				http.StatusUnprocessableEntity, "AsyncRequired")
		}
	})
}

func rowDeprovisionDuringUpdate(r *row) {
	id := r.createInstance()

	lift := r.hold(callUpgrade)
	defer lift()

	r.want("an update", r.update(id, r.patch()), http.StatusAccepted)

	operation := r.want("a deletion during an update", r.remove(id), http.StatusAccepted).Text("operation")
	lift()
	r.wantGone(harness.InstancePath(id), operation)
	r.wantNoClusters()
}

// rowDeprovisionDuringCreation deletes an instance during its creation, once for each call to the Provisioner that the creation
// makes. The test holds the call, because the creation could otherwise succeed before the deletion.
func rowDeprovisionDuringCreation(r *row) {
	for _, held := range []string{"", callOrder, callStatus, callKubeconfig} {
		lift, ends := func() {}, []string{"failed", "succeeded"}
		if held != "" {
			lift, ends = r.hold(held), []string{"failed"}
		}

		id := r.newID()
		created := r.want("an order", r.put(id, r.order()), http.StatusAccepted).Text("operation")
		removed := r.want("a deletion right after it", r.remove(id), http.StatusAccepted).Text("operation")

		lift()
		r.wantGone(harness.InstancePath(id), removed)

		if last := r.waitForEnd(harness.InstancePath(id), created); !slices.Contains(ends, last.Text("state")) {
			r.Errorf("the creation held at %q ended with %d %s", held, last.Status, last.Raw)
		}

		r.want("the instance is gone", r.get(harness.InstancePath(id)), http.StatusNotFound)
	}

	r.wantNoClusters()
}

func rowDeprovisionOperationIsShort(r *row) {
	operation := r.want("a deletion", r.remove(r.createInstance()), http.StatusAccepted).Text("operation")
	if operation == "" || len(operation) > maxOperationLength {
		r.Errorf("the operation is %q", operation)
	}
}

func rowDeprovisionRemovesBindings(r *row) {
	id := r.createInstance()
	created := r.createBinding(id, "b")
	r.deleteInstance(id)
	r.want("the binding is gone", r.get(harness.BindingPath(id, "b")), http.StatusNotFound)
	r.want("the binding is gone", r.unbind(id, "b"), http.StatusGone)
	r.waitForAccessFailure(created)
}

// rowFailedDeprovisionReportsUsability makes the Provisioner refuse to deprovision a runtime.
func rowFailedDeprovisionReportsUsability(r *row) {
	id := r.createInstance()

	lift := r.refuse(callRemoval)
	defer lift()

	got := r.wantFailed(harness.InstancePath(id), r.want("a deletion", r.remove(id), http.StatusAccepted).Text("operation"))
	if _, isBool := got.Body["instance_usable"].(bool); !isBool {
		r.Errorf("instance_usable is missing: %s", got.Raw)
	}

	lift()
	r.deleteInstance(id)
	r.wantNoClusters()
}

func rowFailedInstanceCanBeDeleted(r *row) {
	lift := r.refuse(callOrder)
	defer lift()

	id := r.newID()
	r.want("an order", r.put(id, r.order()), http.StatusAccepted)
	r.wantFailed(harness.InstancePath(id), "")
	r.deleteInstance(id)
	lift()

	bound := r.createInstance()
	restore := r.refuse(callKubeconfig)

	defer restore()

	r.want("a bind", r.bind(bound, "b", r.binding()), http.StatusAccepted)
	r.wantFailed(harness.BindingPath(bound, "b"), "")
	restore()

	if got := r.wantOneOf("an unbind", r.unbind(bound, "b"), http.StatusAccepted, http.StatusGone); got.Status == http.StatusAccepted {
		r.wantGone(harness.BindingPath(bound, "b"), got.Text("operation"))
	}

	r.deleteInstance(bound)
	r.wantNoClusters()
}

// rowUnacknowledgedInstanceCanBeDeleted sends an order and closes the connection before the response arrives. The platform must
// still be able to delete the instance.
func rowUnacknowledgedInstanceCanBeDeleted(r *row) {
	id := r.newID()

	request, err := r.Broker.Request(r.t.Context(), harness.Call{Method: http.MethodPut, Path: harness.InstancePath(id) + harness.Incomplete, Body: r.order()})
	if err != nil {
		r.t.Fatal(err)
	}

	content, err := httputil.DumpRequestOut(request, true)
	if err != nil {
		r.t.Fatal(err)
	}

	connection, err := net.Dial("tcp", strings.TrimPrefix(r.Broker.URL, "http://"))
	if err != nil {
		r.t.Fatal(err)
	}

	if _, err := connection.Write(content); err != nil {
		r.t.Fatal(err)
	}

	if err := connection.Close(); err != nil {
		r.t.Fatal(err)
	}

	r.until("the order to be accepted", func() bool { return r.poll(harness.InstancePath(id), "").Status == http.StatusOK })
	r.deleteInstance(id)
	r.wantNoClusters()
}

func rowRepeatedDeprovisionsSucceed(r *row) {
	id := r.createInstance()
	statuses := map[int]bool{}

	r.until("410", func() bool {
		got := r.wantOneOf("a repeated deletion", r.remove(id), http.StatusAccepted, http.StatusGone)
		statuses[got.Status] = true

		return got.Status == http.StatusGone
	})

	if !statuses[http.StatusAccepted] {
		r.Errorf("the first deletion was not accepted")
	}

	r.want("a deletion of the deleted instance", r.remove(id), http.StatusGone)
}

func rowRejectedProvisionStartsNothing(r *row) {
	for _, bad := range append(malformed(), r.order(fields{"plan_id": "x"}), r.order(fields{"parameters": fields{"x": 1}}),
		r.order(fields{"maintenance_info": fields{"version": "0.0.0"}})) {
		id := r.newID()
		r.wantRejected(harness.Call{Method: http.MethodPut, Path: harness.InstancePath(id) + harness.Incomplete, Body: bad})
		r.want("no operation was started", r.poll(harness.InstancePath(id), ""), http.StatusNotFound)
	}

	r.wantNoClusters()
}

// rowResponsesAreKnownToPlatforms calls every endpoint for an unknown instance. platform.do checks statuses and bodies.
func rowResponsesAreKnownToPlatforms(r *row) {
	id := r.newID()

	for _, call := range endpoints(id, "b") {
		call.Body = r.order()
		r.do(call)
	}
}

func rowNothingIsDeletedUnasked(r *row) {
	isolated := r.isolated()
	id := isolated.createInstance()
	isolated.RestartBroker()
	isolated.want("the instance still exists", isolated.get(harness.InstancePath(id)), http.StatusOK)

	if clusters := isolated.shoots(); len(clusters) != 1 {
		r.Errorf("want one cluster, got %d", len(clusters))
	}
}

// rowServerErrorsOnlyWhenUnknown sends many kinds of bodies to every endpoint. platform.do fails the test if a response has a
// status of 500 or more.
func rowServerErrorsOnlyWhenUnknown(r *row) {
	id := r.createInstance()

	for _, each := range []string{id, r.newID()} {
		for _, call := range endpoints(each, "b") {
			for _, body := range []string{"", "{", r.order(), r.patch(), r.binding()} {
				call.Body = body
				r.do(call)
			}
		}
	}
}
