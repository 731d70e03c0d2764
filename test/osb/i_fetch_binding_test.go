package osb

import (
	"net/http"
	"strings"
)

func fetchBindingRows() map[string]func(*row) {
	return map[string]func(*row){"I1": i1, "I2": i2, "I3": i3, "I4": i4, "I5": i5, "I6": i6}
}

func i1(r *row) {
	for _, planID := range []string{planAWS, planAzure, planGCP, planTrial} {
		id := r.ready(fields{"plan_id": planID, "parameters": nil})
		r.bound(id, "b", fields{"plan_id": planID})
	}
}

func i2(r *row) {
	id := r.ready()
	r.want("an unknown binding", r.get(bindingPath(id, "b")), http.StatusNotFound)
	r.want("a binding of an unknown instance", r.get(bindingPath(r.newID(), "b")), http.StatusNotFound)

	lift := r.hold(callKubeconfig)
	defer lift()

	operation := r.want("a bind", r.bind(id, "b", r.binding()), http.StatusAccepted).text("operation")
	r.want("a binding that is being made", r.get(bindingPath(id, "b")), http.StatusNotFound)
	lift()
	r.succeeded(bindingPath(id, "b"), operation)

	r.gone(bindingPath(id, "b"), r.want("an unbind", r.unbind(id, "b"), http.StatusAccepted).text("operation"))
	r.want("a deleted binding", r.get(bindingPath(id, "b")), http.StatusNotFound)
}

func i3(r *row) {
	made := r.bound(r.ready(), "b")
	if len(made.object("credentials")) == 0 {
		r.Errorf("there are no credentials: %s", made.Raw)
	}

	r.reaches("the credentials that were fetched work", made)
}

func i4(r *row) {
	made := r.bound(r.ready(), "b", fields{"parameters": fields{"expiration_seconds": 900}})
	if made.object("parameters")["expiration_seconds"] != 900.0 || made.Body["endpoints"] == nil || made.object("metadata") == nil {
		r.Errorf("a field is missing: %v, %v, %v", made.Body["parameters"], made.Body["endpoints"], made.Body["metadata"])
	}
}

// i5: no parameter of a bind is secret; who binds, and the context, are not told.
func i5(r *row) {
	made := r.bound(r.ready(), "b", fields{"context": fields{"platform": "x", "email": "marked@example.com", "password": "marked"}})
	if strings.Contains(made.Raw, "marked") {
		r.Errorf("the context is told")
	}
}

func i6(r *row) {
	id := r.ready()
	r.bound(id, "b")
	r.want("right hints", r.get(bindingPath(id, "b")+"?"+ids), http.StatusOK)
	r.wantOneOf("wrong hints", r.get(bindingPath(id, "b")+"?service_id=x&plan_id=y"), http.StatusOK, http.StatusNotFound)
}
