package osb

import (
	"net/http"
	"strconv"

	"github.com/environment-broker/environment-broker/test/harness"
)

func rowOutcomeIsRepeatable(r *row) {
	own := r.own()
	good, bad, gone := own.newID(), own.newID(), own.newID()

	succeeded := own.want("an order", own.put(good, own.order()), http.StatusAccepted).Text("operation")
	own.succeeded(harness.InstancePath(good), succeeded)

	own.succeeded(harness.InstancePath(gone), own.want("an order", own.put(gone, own.order()), http.StatusAccepted).Text("operation"))
	removed := own.want("a deletion", own.remove(gone), http.StatusAccepted).Text("operation")
	own.gone(harness.InstancePath(gone), removed)

	lift := own.refuse(callOrder)
	defer lift()

	failed := own.want("an order", own.put(bad, own.order()), http.StatusAccepted).Text("operation")
	own.failed(harness.InstancePath(bad), failed)

	look := func(when string) {
		for range 2 {
			if got := own.poll(harness.InstancePath(good), succeeded); got.Text("state") != "succeeded" {
				r.Errorf("%s: %s", when, got.Raw)
			}

			if got := own.poll(harness.InstancePath(bad), failed); got.Text("state") != "failed" {
				r.Errorf("%s: %s", when, got.Raw)
			}

			own.want(when, own.poll(harness.InstancePath(gone), removed), http.StatusGone)
		}
	}

	look("polled again")
	own.RestartBroker()
	look("polled after a restart")
}

func rowRetryAfterWhileInProgress(r *row) {
	lift := r.hold(callOrder)
	defer lift()

	id := r.newID()
	r.want("an order", r.put(id, r.order()), http.StatusAccepted)

	seconds, err := strconv.Atoi(r.poll(harness.InstancePath(id), "").Header.Get("Retry-After"))
	if err != nil || seconds < 0 {
		r.Errorf("Retry-After is no number of seconds: %v", err)
	}

	lift()
	r.succeeded(harness.InstancePath(id), "")

	if after := r.poll(harness.InstancePath(id), "").Header.Get("Retry-After"); after != "" {
		r.Errorf("there is nothing to wait for, and Retry-After is %q", after)
	}
}

// rowPollIsDescribed polls operations in each state; do checks every description.
func rowPollIsDescribed(r *row) {
	lift := r.hold(callOrder)
	defer lift()

	id := r.newID()
	operation := r.want("an order", r.put(id, r.order()), http.StatusAccepted).Text("operation")
	if got := r.poll(harness.InstancePath(id), operation); got.Text("description") == "" {
		r.Errorf("there is no description while it is in progress: %s", got.Raw)
	}

	lift()
	r.succeeded(harness.InstancePath(id), operation)

	defer r.refuse(callOrder)()

	bad := r.newID()
	r.want("an order", r.put(bad, r.order()), http.StatusAccepted)

	if got := r.failed(harness.InstancePath(bad), ""); got.Text("description") == "" {
		r.Errorf("there is no description of the failure: %s", got.Raw)
	}
}

func rowUsabilityHintsAfterFailure(r *row) {
	id := r.ready()

	defer r.refuse(callUpgrade)()

	operation := r.want("an update", r.update(id, r.patch()), http.StatusAccepted).Text("operation")
	got := r.failed(harness.InstancePath(id), operation)

	for _, hint := range []string{"instance_usable", "update_repeatable"} {
		if _, isBool := got.Body[hint].(bool); !isBool {
			r.Errorf("a failed update does not return %s: %s", hint, got.Raw)
		}
	}

	defer r.refuse(callOrder)()

	bad := r.newID()
	r.want("an order", r.put(bad, r.order()), http.StatusAccepted)

	if got := r.failed(harness.InstancePath(bad), ""); got.Body["instance_usable"] != nil || got.Body["update_repeatable"] != nil {
		r.Errorf("a failed creation gives hints that are for updates: %s", got.Raw)
	}
}

func rowBindingPolls(r *row) {
	id := r.ready()
	path := harness.BindingPath(id, "b")

	r.want("an unknown binding", r.poll(path, ""), http.StatusNotFound)
	r.want("a binding of an unknown instance", r.poll(harness.BindingPath(r.newID(), "b"), ""), http.StatusNotFound)

	lift := r.hold(callKubeconfig)
	defer lift()

	operation := r.want("a bind", r.bind(id, "b", r.binding()), http.StatusAccepted).Text("operation")

	got := r.want("under way", r.poll(path, operation), http.StatusOK)
	if got.Text("state") != "in progress" || got.Header.Get("Retry-After") == "" {
		r.Errorf("a bind that is held: %s", got.Raw)
	}

	r.want("an unknown operation", r.poll(path, "rubbish"), http.StatusBadRequest)
	lift()

	for range 2 {
		r.succeeded(path, operation)
	}

	removed := r.want("an unbind", r.unbind(id, "b"), http.StatusAccepted).Text("operation")
	r.gone(path, removed)

	if again := r.poll(path, removed); again.Status != http.StatusGone && again.Text("state") != "succeeded" {
		r.Errorf("an unbind that has ended: %d %s", again.Status, again.Raw)
	}
}

func rowOneOperationPerBinding(r *row) {
	id := r.ready()

	lift := r.hold(callKubeconfig)
	defer lift()

	operation := r.want("a bind", r.bind(id, "b", r.binding()), http.StatusAccepted).Text("operation")
	if operation == "" {
		r.Fatalf("a bind gives out no operation")
	}

	again := r.want("the same bind", r.bind(id, "b", r.binding()), http.StatusAccepted)
	if again.Text("operation") != operation {
		r.Errorf("a second operation works on the binding: %s and %s", operation, again.Raw)
	}

	lift()
	r.succeeded(harness.BindingPath(id, "b"), operation)
}

func rowInstanceFetchableWhenReady(r *row) {
	for range 5 {
		r.want("a fetch in the same instant", r.get(harness.InstancePath(r.ready())), http.StatusOK)
	}
}

func rowBindingFetchableWhenReady(r *row) {
	id := r.ready()

	for i := range 3 {
		if made := r.bound(id, "b"+strconv.Itoa(i)); made.Object("credentials") == nil {
			r.Errorf("there are no credentials: %s", made.Raw)
		}
	}
}

// rowOperationsTimeOut has a cluster that never becomes ready.
func rowOperationsTimeOut(r *row) {
	own := r.own("APP_OPERATION_TIMEOUT=2s")
	own.stickClusters()

	id := own.newID()
	operation := own.want("an order", own.put(id, own.order()), http.StatusAccepted).Text("operation")
	own.failed(harness.InstancePath(id), operation)

	own.eachPlan(func(_ offering, plan plan) {
		if plan.MaximumPollingDuration == nil || *plan.MaximumPollingDuration <= 2 {
			r.Errorf("plan %s: platforms stop polling before the operation ends", plan.Name)
		}
	})
}
