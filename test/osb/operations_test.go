package osb

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"

	"github.com/environment-broker/environment-broker/test/harness"
)

// rowSynchronousRequestIsRejected sends requests without accepts_incomplete=true. Only binds and unbinds can be synchronous;
// rowSynchronousBind and rowUnbindWithoutAsync test those.
func rowSynchronousRequestIsRejected(r *row) {
	id, unknown := r.createInstance(), r.newID()

	r.wantUnchanged([]string{harness.InstancePath(id), harness.InstancePath(unknown)}, func() {
		for _, query := range []string{"", "?accepts_incomplete=false", "?accepts_incomplete=", "?accepts_incomplete"} {
			separator := "?"
			if query != "" {
				separator = "&"
			}

			for _, call := range []harness.Call{
				{Method: http.MethodPut, Path: harness.InstancePath(unknown) + query, Body: r.order()},
				{Method: http.MethodPatch, Path: harness.InstancePath(id) + query, Body: r.patch()},
				{Method: http.MethodDelete, Path: harness.InstancePath(id) + query + separator + ids},
			} {
				r.want(call.Method+" "+call.Path, r.do(call), http.StatusUnprocessableEntity, "AsyncRequired")
			}
		}
	})
}

func rowAsynchronousRequestIs202(r *row) {
	id := r.newID()
	path := harness.InstancePath(id)

	r.wantSucceeded(path, r.want("provision", r.put(id, r.order()), http.StatusAccepted).Text("operation"))
	r.wantSucceeded(path, r.want("update", r.update(id, r.patch()), http.StatusAccepted).Text("operation"))

	bound := harness.BindingPath(id, "b")
	r.wantSucceeded(bound, r.want("bind", r.bind(id, "b", r.binding()), http.StatusAccepted).Text("operation"))
	r.wantGone(bound, r.want("unbind", r.unbind(id, "b"), http.StatusAccepted).Text("operation"))
	r.wantGone(path, r.want("deprovision", r.remove(id), http.StatusAccepted).Text("operation"))
}

func rowSuccessMeansUsable(r *row) {
	id := r.createInstance()

	created := r.want("a synchronous bind", r.bindNow(id, "b", r.binding()), http.StatusCreated)
	r.wantAccess("the returned credentials work immediately", created)

	r.want("an update without effect", r.update(id, encode(fields{"service_id": harness.ServiceID})), http.StatusOK)
	r.want("the instance is usable", r.get(harness.InstancePath(id)), http.StatusOK)
}

func rowConflictingRequestIsConcurrencyError(r *row) {
	lift := r.hold(callOrder)
	defer lift()

	id := r.newID()
	operation := r.want("an order", r.put(id, r.order()), http.StatusAccepted).Text("operation")
	r.want("an update during the creation", r.update(id, r.patch()), http.StatusUnprocessableEntity, "ConcurrencyError")

	lift()
	r.wantSucceeded(harness.InstancePath(id), operation)

	hold := r.hold(callUpgrade)
	defer hold()

	var (
		responses [2]harness.Reply
		both      sync.WaitGroup
	)

	for i := range responses {
		both.Go(func() {
			responses[i] = r.update(id, r.patch(fields{"parameters": fields{"autoScalerMax": 10 + i}}))
		})
	}

	both.Wait()

	statuses := []int{responses[0].Status, responses[1].Status}
	slices.Sort(statuses)

	if !slices.Equal(statuses, []int{http.StatusAccepted, http.StatusUnprocessableEntity}) {
		r.Fatalf("two concurrent updates: %s and %s", responses[0].Raw, responses[1].Raw)
	}

	for _, response := range responses {
		if response.Status == http.StatusUnprocessableEntity && response.Text("error") != "ConcurrencyError" {
			r.Errorf("the second update is rejected with %s", response.Raw)
		}
	}

	if got := r.wantOneOf("a bind during an update", r.bind(id, "b", r.binding()), http.StatusAccepted,
		http.StatusUnprocessableEntity); got.Status == http.StatusUnprocessableEntity && got.Text("error") != "ConcurrencyError" {
		r.Errorf("a bind during an update is rejected with %s", got.Raw)
	}
}

func rowPollReportsState(r *row) {
	lift := r.hold(callOrder)
	defer lift()

	good, bad := r.newID(), r.newID()
	r.want("an order", r.put(good, r.order()), http.StatusAccepted)

	if state := r.poll(harness.InstancePath(good), "").Text("state"); state != "in progress" {
		r.Errorf("the state of a held order is %q", state)
	}

	lift()
	r.wantSucceeded(harness.InstancePath(good), "")

	defer r.refuse(callOrder)()

	r.want("an order", r.put(bad, r.order()), http.StatusAccepted)
	r.wantFailed(harness.InstancePath(bad), "")
}

func rowMalformedPollIs400(r *row) {
	id := r.createInstance()

	for _, malformed := range []string{"rubbish", "00000000-0000-4000-8000-000000000000", "update2"} {
		r.want("an unknown operation: "+malformed, r.poll(harness.InstancePath(id), malformed), http.StatusBadRequest)
	}

	r.want("a malformed query", r.get(harness.InstancePath(id)+"/last_operation?operation=%zz"), http.StatusBadRequest)
}

func rowPollOfUnknownInstanceIs404(r *row) {
	for _, operation := range []string{"", "provision", "00000000-0000-4000-8000-000000000000"} {
		r.want("an unknown instance", r.poll(harness.InstancePath(r.newID()), operation), http.StatusNotFound)
	}
}

func rowEndedDeletionSucceeds(r *row) {
	id := r.newID()
	created := r.want("an order", r.put(id, r.order()), http.StatusAccepted).Text("operation")
	r.wantSucceeded(harness.InstancePath(id), created)

	lift := r.hold(callUpgrade)
	defer lift()

	changed := r.want("an update", r.update(id, r.patch()), http.StatusAccepted).Text("operation")
	r.want("an update in progress", r.poll(harness.InstancePath(id), changed), http.StatusOK)
	lift()
	r.wantSucceeded(harness.InstancePath(id), changed)

	removed := r.want("a deletion", r.remove(id), http.StatusAccepted).Text("operation")
	r.wantGone(harness.InstancePath(id), removed)

	for _, operation := range []string{removed, ""} {
		if got := r.want("the deletion has ended", r.poll(harness.InstancePath(id), operation), http.StatusOK); got.Text("state") != "succeeded" {
			r.Errorf("an ended deletion: %s", got.Raw)
		}
	}

	r.want("only a deletion of the deleted instance is gone", r.remove(id), http.StatusGone)

	for _, earlier := range []string{created, changed} {
		r.want("an earlier operation is not a deletion", r.poll(harness.InstancePath(id), earlier), http.StatusOK)
	}
}

func rowOperationIsAccepted(r *row) {
	id := r.newID()
	operation := r.want("an order", r.put(id, r.order()), http.StatusAccepted).Text("operation")

	encoded := strings.ReplaceAll(fmt.Sprintf("% x", operation), " ", "%")

	for _, query := range []string{
		"", "?operation=" + operation, "?operation=%" + encoded, "?operation=" + operation + "&" + ids, "?" + ids,
		"?operation=" + operation + "&service_id=" + harness.ServiceID + "&plan_id=" + harness.PlanGCP, "?operation=",
	} {
		r.want("a poll with "+query, r.get(harness.InstancePath(id)+"/last_operation"+query), http.StatusOK)
	}
}
