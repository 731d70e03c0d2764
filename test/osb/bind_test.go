package osb

import (
	"net/http"
	"strconv"
	"sync"

	"github.com/environment-broker/environment-broker/test/harness"
)

func rowBindNeedsID(r *row) {
	id := r.createInstance()
	r.want("a bind without an ID has no route", r.do(harness.Call{
		Method: http.MethodPut, Path: harness.InstancePath(id) + "/service_bindings/" + harness.Incomplete, Body: r.binding(),
	}), http.StatusNotFound)

	r.createBinding(id, "one")
	r.want("a binding has its ID", r.get(harness.BindingPath(id, "one")), http.StatusOK)
	r.want("a different ID creates a different binding", r.get(harness.BindingPath(id, "other")), http.StatusNotFound)
}

func rowBindNeedsServiceAndPlan(r *row) {
	id := r.createInstance()

	r.wantUnchanged([]string{harness.BindingPath(id, "b")}, func() {
		for reason, change := range map[string]fields{
			"no service": {"service_id": nil}, "no plan": {"plan_id": nil}, "empty service": {"service_id": ""}, "empty plan": {"plan_id": ""},
			"unknown service": {"service_id": "x"}, "unknown plan": {"plan_id": "x"}, "the plan of another instance": {"plan_id": harness.PlanGCP},
			"a number": {"plan_id": 5},
		} {
			r.want(reason, r.bind(id, "b", r.binding(change)), http.StatusBadRequest)
		}
	})
}

func rowMalformedBindIs400(r *row) {
	id := r.createInstance()

	for _, bad := range malformed() {
		r.want("a malformed bind: "+bad, r.bind(id, "b", bad), http.StatusBadRequest)
	}

	for reason, change := range map[string]fields{
		"parameters are an array": {"parameters": []int{}}, "context is a string": {"context": "x"}, "bind_resource is a string": {"bind_resource": "x"},
	} {
		r.want(reason, r.bind(id, "b", r.binding(change)), http.StatusBadRequest)
	}

	r.want("nothing was created", r.get(harness.BindingPath(id, "b")), http.StatusNotFound)
	r.want("an empty app_guid counts as absent", r.bindNow(id, "b", r.binding(fields{"app_guid": ""})), http.StatusCreated)
}

func rowRepeatedBindIs200(r *row) {
	id := r.createInstance()

	created := r.want("a new binding", r.bindNow(id, "b", r.binding()), http.StatusCreated)

	for _, again := range []harness.Reply{r.bindNow(id, "b", r.binding()), r.bind(id, "b", r.binding())} {
		r.want("the same bind again", again, http.StatusOK)

		if encode(again.Body["credentials"]) != encode(created.Body["credentials"]) {
			r.Errorf("a repeated bind returns different credentials")
		}
	}
}

func rowBindIs202WithoutCredentials(r *row) {
	id := r.createInstance()

	lift := r.hold(callKubeconfig)
	defer lift()

	first := r.want("a bind", r.bind(id, "b", r.binding()), http.StatusAccepted)
	for field := range first.Body {
		if field != "operation" {
			r.Errorf("the response contains more than the operation: %s", first.Raw)
		}
	}

	if again := r.want("the same bind", r.bind(id, "b", r.binding()), http.StatusAccepted); again.Raw != first.Raw {
		r.Errorf("a repeated bind returns a different response: %s and %s", first.Raw, again.Raw)
	}

	lift()
	r.wantSucceeded(harness.BindingPath(id, "b"), first.Text("operation"))
}

func rowDifferentBindIs409(r *row) {
	id := r.createInstance()

	lift := r.hold(callKubeconfig)
	defer lift()

	other := r.binding(fields{"parameters": fields{"expiration_seconds": 900}})
	operation := r.want("a bind", r.bind(id, "b", r.binding()), http.StatusAccepted).Text("operation")
	r.want("other parameters, in progress", r.bind(id, "b", other), http.StatusConflict)

	lift()
	r.wantSucceeded(harness.BindingPath(id, "b"), operation)
	r.want("other parameters, ready", r.bind(id, "b", other), http.StatusConflict)
}

// rowSynchronousBind binds without accepts_incomplete=true: the response contains the binding, not an operation.
func rowSynchronousBind(r *row) {
	id := r.createInstance()

	for i, query := range []string{"", "?accepts_incomplete=false", "?accepts_incomplete="} {
		binding := "b" + strconv.Itoa(i)
		r.want("a bind with "+query, r.do(harness.Call{
			Method: http.MethodPut, Path: harness.BindingPath(id, binding) + query, Body: r.binding(),
		}), http.StatusCreated)
		r.want("a fetch finds the binding", r.get(harness.BindingPath(id, binding)), http.StatusOK)
	}
}

func rowParallelBinds(r *row) {
	id := r.createInstance()

	var all sync.WaitGroup

	responses := make([]harness.Reply, 4)
	for i := range responses {
		all.Go(func() { responses[i] = r.bind(id, "b"+strconv.Itoa(i), r.binding()) })
	}

	all.Wait()

	for i, response := range responses {
		if response.Status == http.StatusUnprocessableEntity && response.Text("error") == "ConcurrencyError" {
			continue
		}

		r.want("one of several parallel binds", response, http.StatusAccepted)
		r.wantSucceeded(harness.BindingPath(id, "b"+strconv.Itoa(i)), response.Text("operation"))
	}
}

func rowAppIsOptional(r *row) {
	id := r.createInstance()
	r.want("a bind without an app", r.bindNow(id, "b", r.binding(fields{"app_guid": nil, "bind_resource": nil})), http.StatusCreated)
}

func rowCredentialsWork(r *row) {
	id := r.createInstance()
	r.wantAccess("the credentials of a synchronous bind", r.want("a bind", r.bindNow(id, "now", r.binding()), http.StatusCreated))
	r.wantAccess("the credentials of an asynchronous bind", r.createBinding(id, "later"))
}

func rowCredentialsDiffer(r *row) {
	id := r.createInstance()
	one, other := r.createBinding(id, "one"), r.createBinding(id, "other")

	if r.clusterConfig(one).BearerToken == r.clusterConfig(other).BearerToken {
		r.Fatalf("two bindings have the same credentials")
	}

	r.wantGone(harness.BindingPath(id, "one"), r.want("an unbind", r.unbind(id, "one"), http.StatusAccepted).Text("operation"))
	r.waitForRejectedToken("the first binding was deleted", one)
	r.wantAccess("the other binding still exists", other)
}
