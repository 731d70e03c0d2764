package osb

import (
	"net/http"
	"strings"

	"github.com/environment-broker/environment-broker/test/harness"
)

func rowEveryPlansBindingsAreFetchable(r *row) {
	for _, planID := range []string{harness.PlanAWS, harness.PlanAzure, harness.PlanGCP, harness.PlanTrial} {
		id := r.createInstance(fields{"plan_id": planID, "parameters": nil})
		r.createBinding(id, "b", fields{"plan_id": planID})
	}
}

func rowFetchOfUnknownBindingIs404(r *row) {
	id := r.createInstance()
	r.want("an unknown binding", r.get(harness.BindingPath(id, "b")), http.StatusNotFound)
	r.want("a binding of an unknown instance", r.get(harness.BindingPath(r.newID(), "b")), http.StatusNotFound)

	lift := r.hold(callKubeconfig)
	defer lift()

	operation := r.want("a bind", r.bind(id, "b", r.binding()), http.StatusAccepted).Text("operation")
	r.want("a binding that is being created", r.get(harness.BindingPath(id, "b")), http.StatusNotFound)
	lift()
	r.wantSucceeded(harness.BindingPath(id, "b"), operation)

	r.wantGone(harness.BindingPath(id, "b"), r.want("an unbind", r.unbind(id, "b"), http.StatusAccepted).Text("operation"))
	r.want("a deleted binding", r.get(harness.BindingPath(id, "b")), http.StatusNotFound)
}

func rowFetchReturnsCredentials(r *row) {
	created := r.createBinding(r.createInstance(), "b")
	if len(created.Object("credentials")) == 0 {
		r.Errorf("the credentials are missing: %s", created.Raw)
	}

	r.wantAccess("fetched credentials work", created)
}

func rowFetchReturnsBindingFields(r *row) {
	created := r.createBinding(r.createInstance(), "b", fields{"parameters": fields{"expiration_seconds": 900}})
	if created.Object("parameters")["expiration_seconds"] != 900.0 || created.Body["endpoints"] == nil || created.Object("metadata") == nil {
		r.Errorf("a field is missing: %v, %v, %v", created.Body["parameters"], created.Body["endpoints"], created.Body["metadata"])
	}
}

// rowFetchReturnsNoSecretParameter checks that a fetch does not return the context from the bind request. A bind request has no
// secret parameters.
func rowFetchReturnsNoSecretParameter(r *row) {
	created := r.createBinding(r.createInstance(), "b", fields{"context": fields{"platform": "x", "email": "marked@example.com", "password": "marked"}})
	if strings.Contains(created.Raw, "marked") {
		r.Errorf("the response contains the context")
	}
}

func rowFetchBindingHintsAreIgnored(r *row) {
	id := r.createInstance()
	r.createBinding(id, "b")
	r.want("correct hints", r.get(harness.BindingPath(id, "b")+"?"+ids), http.StatusOK)
	r.wantOneOf("wrong hints", r.get(harness.BindingPath(id, "b")+"?service_id=x&plan_id=y"), http.StatusOK, http.StatusNotFound)
}
