package osb

import (
	"net/http"
	"strconv"
	"sync"
)

func bindRows() map[string]func(*row) {
	return map[string]func(*row){
		"G1": g1, "G2": g2, "G3": g3, "G4": g4, "G5": g5, "G6": g6, "G7": g7, "G8": g8, "G9": g9, "G10": g10, "G11": g11, "G12": g12,
		"G13": g13, "G14": g14, "G15": g15, "G16": g16, "G17": g17, "G18": g18, "G19": g19, "G20": g20, "G21": g21, "G22": g22,
	}
}

func g1(r *row) {
	id := r.ready()
	r.want("there is no such path", r.do(call{
		method: http.MethodPut, path: instancePath(id) + "/service_bindings/" + incomplete, body: r.binding(),
	}), http.StatusNotFound)

	r.bound(id, "one")
	r.want("the id is the key of the binding", r.get(bindingPath(id, "one")), http.StatusOK)
	r.want("another id is another binding", r.get(bindingPath(id, "other")), http.StatusNotFound)
}

func g2(r *row) {
	id := r.ready()

	r.unchanged([]string{bindingPath(id, "b")}, func() {
		for reason, change := range map[string]fields{
			"no service": {"service_id": nil}, "no plan": {"plan_id": nil}, "empty service": {"service_id": ""}, "empty plan": {"plan_id": ""},
			"unknown service": {"service_id": "x"}, "unknown plan": {"plan_id": "x"}, "the plan of another instance": {"plan_id": planGCP},
			"a number": {"plan_id": 5},
		} {
			r.want(reason, r.bind(id, "b", r.binding(change)), http.StatusBadRequest)
		}
	})
}

func g3(r *row) {
	id := r.ready()

	for _, bad := range malformed() {
		r.want("a malformed bind: "+bad, r.bind(id, "b", bad), http.StatusBadRequest)
	}

	for reason, change := range map[string]fields{
		"parameters an array": {"parameters": []int{}}, "context a text": {"context": "x"}, "bind_resource a text": {"bind_resource": "x"},
	} {
		r.want(reason, r.bind(id, "b", r.binding(change)), http.StatusBadRequest)
	}

	r.want("nothing was made", r.get(bindingPath(id, "b")), http.StatusNotFound)
	r.want("an empty app_guid is none", r.bindNow(id, "b", r.binding(fields{"app_guid": ""})), http.StatusCreated)
}

func g4(r *row) {
	id := r.ready()

	made := r.want("a new binding", r.bindNow(id, "b", r.binding()), http.StatusCreated)

	for _, again := range []reply{r.bindNow(id, "b", r.binding()), r.bind(id, "b", r.binding())} {
		r.want("the same again", again, http.StatusOK)

		if encode(again.Body["credentials"]) != encode(made.Body["credentials"]) {
			r.Errorf("the credentials are other ones")
		}
	}
}

func g5(r *row) {
	id := r.ready()

	lift := r.hold(callKubeconfig)
	defer lift()

	first := r.want("a bind", r.bind(id, "b", r.binding()), http.StatusAccepted)
	for field := range first.Body {
		if field != "operation" {
			r.Errorf("there is more than the operation: %s", first.Raw)
		}
	}

	if again := r.want("the same bind", r.bind(id, "b", r.binding()), http.StatusAccepted); again.Raw != first.Raw {
		r.Errorf("the same bind has another answer: %s and %s", first.Raw, again.Raw)
	}

	lift()
	r.succeeded(bindingPath(id, "b"), first.text("operation"))
}

func g6(r *row) {
	id := r.ready()

	lift := r.hold(callKubeconfig)
	defer lift()

	other := r.binding(fields{"parameters": fields{"expiration_seconds": 900}})
	operation := r.want("a bind", r.bind(id, "b", r.binding()), http.StatusAccepted).text("operation")
	r.want("other parameters, in progress", r.bind(id, "b", other), http.StatusConflict)

	lift()
	r.succeeded(bindingPath(id, "b"), operation)
	r.want("other parameters, ready", r.bind(id, "b", other), http.StatusConflict)
}

// g7: a bind that may not take its time is done at once.
func g7(r *row) {
	id := r.ready()

	for i, query := range []string{"", "?accepts_incomplete=false", "?accepts_incomplete="} {
		binding := "b" + strconv.Itoa(i)
		r.want("a bind with "+query, r.do(call{
			method: http.MethodPut, path: bindingPath(id, binding) + query, body: r.binding(),
		}), http.StatusCreated)
		r.want("it is there", r.get(bindingPath(id, binding)), http.StatusOK)
	}
}

func g8(r *row) {
	id := r.ready()

	var all sync.WaitGroup

	answers := make([]reply, 4)
	for i := range answers {
		all.Go(func() { answers[i] = r.bind(id, "b"+strconv.Itoa(i), r.binding()) })
	}

	all.Wait()

	for i, answer := range answers {
		if answer.Status == http.StatusUnprocessableEntity && answer.text("error") == "ConcurrencyError" {
			continue
		}

		r.want("one of several binds", answer, http.StatusAccepted)
		r.succeeded(bindingPath(id, "b"+strconv.Itoa(i)), answer.text("operation"))
	}
}

func g9(r *row) {
	id := r.ready()
	r.want("a bind without an app", r.bindNow(id, "b", r.binding(fields{"app_guid": nil, "bind_resource": nil})), http.StatusCreated)
}

func g10(r *row) {
	id := r.ready()
	r.reaches("the credentials of a bind at once", r.want("a bind", r.bindNow(id, "now", r.binding()), http.StatusCreated))
	r.reaches("the credentials of a bind that took its time", r.bound(id, "later"))
}

func g11(r *row) {
	id := r.ready()
	one, other := r.bound(id, "one"), r.bound(id, "other")

	if r.access(one).BearerToken == r.access(other).BearerToken {
		r.Fatalf("two bindings have the same credentials")
	}

	r.gone(bindingPath(id, "one"), r.want("an unbind", r.unbind(id, "one"), http.StatusAccepted).text("operation"))
	r.refusedSoon("one was removed", one)
	r.reaches("the other was not", other)
}
