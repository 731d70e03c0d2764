package osb

import (
	"net/http"
	"strconv"

	"github.com/environment-broker/environment-broker/test/harness"
)

func rowOutcomeIsRepeatable(r *row) {
	isolated := r.isolated()
	good, bad, gone := isolated.newID(), isolated.newID(), isolated.newID()

	succeeded := isolated.want("an order", isolated.put(good, isolated.order()), http.StatusAccepted).Text("operation")
	isolated.wantSucceeded(harness.InstancePath(good), succeeded)

	isolated.wantSucceeded(harness.InstancePath(gone), isolated.want("an order", isolated.put(gone, isolated.order()), http.StatusAccepted).Text("operation"))
	removed := isolated.want("a deletion", isolated.remove(gone), http.StatusAccepted).Text("operation")
	isolated.wantGone(harness.InstancePath(gone), removed)

	lift := isolated.refuse(callOrder)
	defer lift()

	failed := isolated.want("an order", isolated.put(bad, isolated.order()), http.StatusAccepted).Text("operation")
	isolated.wantFailed(harness.InstancePath(bad), failed)

	check := func(when string) {
		for range 2 {
			if got := isolated.poll(harness.InstancePath(good), succeeded); got.Text("state") != "succeeded" {
				r.Errorf("%s: %s", when, got.Raw)
			}

			if got := isolated.poll(harness.InstancePath(bad), failed); got.Text("state") != "failed" {
				r.Errorf("%s: %s", when, got.Raw)
			}

			if got := isolated.poll(harness.InstancePath(gone), removed); got.Status != http.StatusOK || got.Text("state") != "succeeded" {
				r.Errorf("%s: %d %s", when, got.Status, got.Raw)
			}
		}
	}

	check("polled again")
	isolated.RestartBroker()
	check("polled after a restart")
}

func rowRetryAfterWhileInProgress(r *row) {
	lift := r.hold(callOrder)
	defer lift()

	id := r.newID()
	r.want("an order", r.put(id, r.order()), http.StatusAccepted)

	seconds, err := strconv.Atoi(r.poll(harness.InstancePath(id), "").Header.Get("Retry-After"))
	if err != nil || seconds < 0 {
		r.Errorf("Retry-After is not a number of seconds: %v", err)
	}

	lift()
	r.wantSucceeded(harness.InstancePath(id), "")

	if after := r.poll(harness.InstancePath(id), "").Header.Get("Retry-After"); after != "" {
		r.Errorf("the operation has ended, but Retry-After is %q", after)
	}
}

// rowPollIsDescribed polls an operation in progress and a failed one. Both responses must have a description.
func rowPollIsDescribed(r *row) {
	lift := r.hold(callOrder)
	defer lift()

	id := r.newID()
	operation := r.want("an order", r.put(id, r.order()), http.StatusAccepted).Text("operation")
	if got := r.poll(harness.InstancePath(id), operation); got.Text("description") == "" {
		r.Errorf("an operation in progress has no description: %s", got.Raw)
	}

	lift()
	r.wantSucceeded(harness.InstancePath(id), operation)

	defer r.refuse(callOrder)()

	bad := r.newID()
	r.want("an order", r.put(bad, r.order()), http.StatusAccepted)

	if got := r.wantFailed(harness.InstancePath(bad), ""); got.Text("description") == "" {
		r.Errorf("the failed operation has no description: %s", got.Raw)
	}
}

func rowUsabilityHintsAfterFailure(r *row) {
	id := r.createInstance()

	defer r.refuse(callUpgrade)()

	operation := r.want("an update", r.update(id, r.patch()), http.StatusAccepted).Text("operation")
	got := r.wantFailed(harness.InstancePath(id), operation)

	for _, hint := range []string{"instance_usable", "update_repeatable"} {
		if _, isBool := got.Body[hint].(bool); !isBool {
			r.Errorf("a failed update does not return %s: %s", hint, got.Raw)
		}
	}

	defer r.refuse(callOrder)()

	bad := r.newID()
	r.want("an order", r.put(bad, r.order()), http.StatusAccepted)

	if got := r.wantFailed(harness.InstancePath(bad), ""); got.Body["instance_usable"] != nil || got.Body["update_repeatable"] != nil {
		r.Errorf("a failed creation returns hints for updates: %s", got.Raw)
	}
}

func rowBindingPolls(r *row) {
	id := r.createInstance()
	path := harness.BindingPath(id, "b")

	r.want("an unknown binding", r.poll(path, ""), http.StatusNotFound)
	r.want("a binding of an unknown instance", r.poll(harness.BindingPath(r.newID(), "b"), ""), http.StatusNotFound)

	lift := r.hold(callKubeconfig)
	defer lift()

	operation := r.want("a bind", r.bind(id, "b", r.binding()), http.StatusAccepted).Text("operation")

	got := r.want("in progress", r.poll(path, operation), http.StatusOK)
	if got.Text("state") != "in progress" || got.Header.Get("Retry-After") == "" {
		r.Errorf("a held bind: %s", got.Raw)
	}

	r.want("an unknown operation", r.poll(path, "rubbish"), http.StatusBadRequest)
	lift()

	for range 2 {
		r.wantSucceeded(path, operation)
	}

	removed := r.want("an unbind", r.unbind(id, "b"), http.StatusAccepted).Text("operation")
	r.wantGone(path, removed)

	if again := r.poll(path, removed); again.Status != http.StatusOK || again.Text("state") != "succeeded" {
		r.Errorf("an ended unbind: %d %s", again.Status, again.Raw)
	}
}

func rowOneOperationPerBinding(r *row) {
	id := r.createInstance()

	lift := r.hold(callKubeconfig)
	defer lift()

	operation := r.want("a bind", r.bind(id, "b", r.binding()), http.StatusAccepted).Text("operation")
	if operation == "" {
		r.Fatalf("the bind returns no operation")
	}

	again := r.want("the same bind", r.bind(id, "b", r.binding()), http.StatusAccepted)
	if again.Text("operation") != operation {
		r.Errorf("the binding has two operations: %s and %s", operation, again.Raw)
	}

	lift()
	r.wantSucceeded(harness.BindingPath(id, "b"), operation)
}

func rowInstanceFetchableWhenReady(r *row) {
	for range 5 {
		r.want("a fetch right after the poll", r.get(harness.InstancePath(r.createInstance())), http.StatusOK)
	}
}

func rowBindingFetchableWhenReady(r *row) {
	id := r.createInstance()

	for i := range 3 {
		if created := r.createBinding(id, "b"+strconv.Itoa(i)); created.Object("credentials") == nil {
			r.Errorf("the credentials are missing: %s", created.Raw)
		}
	}
}

// rowOperationsTimeOut orders a cluster that never becomes ready. The operation must fail before platforms stop polling.
func rowOperationsTimeOut(r *row) {
	isolated := r.isolated("APP_OPERATION_TIMEOUT=2s")
	harness.InjectClusterFaults(r.t, isolated.Garden, harness.StuckClusters())

	id := isolated.newID()
	operation := isolated.want("an order", isolated.put(id, isolated.order()), http.StatusAccepted).Text("operation")
	isolated.wantFailed(harness.InstancePath(id), operation)

	isolated.eachPlan(func(_ offering, plan plan) {
		if plan.MaximumPollingDuration == nil || *plan.MaximumPollingDuration <= 2 {
			r.Errorf("plan %s: platforms stop polling before the operation ends", plan.Name)
		}
	})
}
