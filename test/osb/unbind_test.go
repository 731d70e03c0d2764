package osb

import (
	"net/http"

	"github.com/environment-broker/environment-broker/test/harness"
)

func rowUnbindNeedsServiceAndPlan(r *row) {
	id := r.createInstance()
	r.createBinding(id, "b")

	r.wantUnchanged([]string{harness.BindingPath(id, "b")}, func() {
		for _, query := range []string{
			"", "&service_id=" + harness.ServiceID, "&plan_id=" + harness.PlanAWS, "&service_id=&plan_id=", "&service_id=x&plan_id=" + harness.PlanAWS,
			"&service_id=" + harness.ServiceID + "&plan_id=" + harness.PlanGCP,
		} {
			r.want("an unbind with "+query, r.do(harness.Call{Method: http.MethodDelete, Path: harness.BindingPath(id, "b") + harness.Incomplete + query}),
				http.StatusBadRequest)
		}
	})
}

func rowUnbindRevokesCredentials(r *row) {
	id := r.createInstance()
	created := r.createBinding(id, "b")
	r.wantAccess("the credentials work", created)
	r.wantGone(harness.BindingPath(id, "b"), r.want("an unbind", r.unbind(id, "b"), http.StatusAccepted).Text("operation"))
	r.waitForRejectedToken("the binding is deleted", created)
	r.want("the binding cannot be fetched", r.get(harness.BindingPath(id, "b")), http.StatusNotFound)
}

func rowSynchronousUnbindIs200(r *row) {
	id := r.createInstance()
	r.createBinding(id, "b")

	got := r.want("a synchronous unbind", r.do(harness.Call{Method: http.MethodDelete, Path: harness.BindingPath(id, "b") + "?" + ids}), http.StatusOK)
	if len(got.Body) != 0 {
		r.Errorf("the body is %s", got.Raw)
	}
}

func rowRepeatedUnbindReturnsOperation(r *row) {
	id := r.createInstance()
	r.createBinding(id, "b")

	lift := r.hold(callKubeconfig)
	defer lift()

	first := r.want("an unbind", r.unbind(id, "b"), http.StatusAccepted)
	if again := r.want("the same unbind", r.unbind(id, "b"), http.StatusAccepted); again.Raw != first.Raw {
		r.Errorf("a repeated unbind returns a different response: %s and %s", first.Raw, again.Raw)
	}

	lift()
	r.wantGone(harness.BindingPath(id, "b"), first.Text("operation"))
}

func rowUnbindOfUnknownBindingIs410(r *row) {
	id, other := r.createInstance(), r.createInstance()
	r.createBinding(id, "b")

	r.want("an unknown binding", r.unbind(id, "unknown"), http.StatusGone)
	r.want("a binding of another instance", r.unbind(other, "b"), http.StatusGone)
	r.want("a binding of an unknown instance", r.unbind(r.newID(), "b"), http.StatusGone)
	r.want("the binding still exists", r.get(harness.BindingPath(id, "b")), http.StatusOK)

	r.wantGone(harness.BindingPath(id, "b"), r.want("an unbind", r.unbind(id, "b"), http.StatusAccepted).Text("operation"))
	r.want("a deleted binding", r.unbind(id, "b"), http.StatusGone)
}

// rowUnbindWithoutAsync unbinds without accepts_incomplete=true. The response has no operation, and the binding is gone.
func rowUnbindWithoutAsync(r *row) {
	id := r.createInstance()

	for _, query := range []string{"?", "?accepts_incomplete=false&", "?accepts_incomplete=&"} {
		r.createBinding(id, "b")
		r.want("an unbind with "+query, r.do(harness.Call{Method: http.MethodDelete, Path: harness.BindingPath(id, "b") + query + ids}), http.StatusOK)
		r.want("the binding is gone", r.get(harness.BindingPath(id, "b")), http.StatusNotFound)
	}
}

func rowUnbindDuringCreation(r *row) {
	id := r.createInstance()

	lift := r.hold(callKubeconfig)
	defer lift()

	r.want("a bind", r.bind(id, "b", r.binding()), http.StatusAccepted)

	got := r.wantOneOf("an unbind during the creation", r.unbind(id, "b"), http.StatusAccepted, http.StatusUnprocessableEntity)
	if got.Status == http.StatusUnprocessableEntity && got.Text("error") != "ConcurrencyError" {
		r.Errorf("an unbind during the creation is rejected with %s", got.Raw)
	}

	lift()

	if got.Status == http.StatusUnprocessableEntity {
		r.wantSucceeded(harness.BindingPath(id, "b"), "")
		got = r.want("an unbind", r.unbind(id, "b"), http.StatusAccepted)
	}

	r.wantGone(harness.BindingPath(id, "b"), got.Text("operation"))
	r.want("the binding is gone", r.get(harness.BindingPath(id, "b")), http.StatusNotFound)
}

func rowUnbindOperationIsShort(r *row) {
	id := r.createInstance()
	r.createBinding(id, "b")

	operation := r.want("an unbind", r.unbind(id, "b"), http.StatusAccepted).Text("operation")
	if operation == "" || len(operation) > maxOperationLength {
		r.Errorf("the operation is %q", operation)
	}
}
