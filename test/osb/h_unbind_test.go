package osb

import "net/http"

func unbindRows() map[string]func(*row) {
	return map[string]func(*row){"H1": h1, "H2": h2, "H3": h3, "H4": h4, "H5": h5, "H6": h6, "H7": h7, "H8": h8}
}

func h1(r *row) {
	id := r.ready()
	r.bound(id, "b")

	r.unchanged([]string{bindingPath(id, "b")}, func() {
		for _, query := range []string{
			"", "&service_id=" + serviceID, "&plan_id=" + planAWS, "&service_id=&plan_id=", "&service_id=x&plan_id=" + planAWS,
			"&service_id=" + serviceID + "&plan_id=" + planGCP,
		} {
			r.want("an unbind with "+query, r.do(call{method: http.MethodDelete, path: bindingPath(id, "b") + incomplete + query}),
				http.StatusBadRequest)
		}
	})
}

func h2(r *row) {
	id := r.ready()
	made := r.bound(id, "b")
	r.reaches("the credentials work", made)
	r.gone(bindingPath(id, "b"), r.want("an unbind", r.unbind(id, "b"), http.StatusAccepted).text("operation"))
	r.refusedSoon("the binding is gone", made)
	r.want("it cannot be fetched", r.get(bindingPath(id, "b")), http.StatusNotFound)
}

func h3(r *row) {
	id := r.ready()
	r.bound(id, "b")

	got := r.want("an unbind at once", r.do(call{method: http.MethodDelete, path: bindingPath(id, "b") + "?" + ids}), http.StatusOK)
	if len(got.Body) != 0 {
		r.Errorf("the body is %s", got.Raw)
	}
}

func h4(r *row) {
	id := r.ready()
	r.bound(id, "b")

	lift := r.hold(callKubeconfig)
	defer lift()

	first := r.want("an unbind", r.unbind(id, "b"), http.StatusAccepted)
	if again := r.want("the same unbind", r.unbind(id, "b"), http.StatusAccepted); again.Raw != first.Raw {
		r.Errorf("the same unbind has another answer: %s and %s", first.Raw, again.Raw)
	}

	lift()
	r.gone(bindingPath(id, "b"), first.text("operation"))
}

func h5(r *row) {
	id, other := r.ready(), r.ready()
	r.bound(id, "b")

	r.want("an unknown binding", r.unbind(id, "unknown"), http.StatusGone)
	r.want("a binding of another instance", r.unbind(other, "b"), http.StatusGone)
	r.want("a binding of an unknown instance", r.unbind(r.newID(), "b"), http.StatusGone)
	r.want("nothing happened to it", r.get(bindingPath(id, "b")), http.StatusOK)

	r.gone(bindingPath(id, "b"), r.want("an unbind", r.unbind(id, "b"), http.StatusAccepted).text("operation"))
	r.want("a deleted binding", r.unbind(id, "b"), http.StatusGone)
}

// h6: an unbind that may not take its time is done at once.
func h6(r *row) {
	id := r.ready()

	for _, query := range []string{"?", "?accepts_incomplete=false&", "?accepts_incomplete=&"} {
		r.bound(id, "b")
		r.want("an unbind with "+query, r.do(call{method: http.MethodDelete, path: bindingPath(id, "b") + query + ids}), http.StatusOK)
		r.want("it is gone", r.get(bindingPath(id, "b")), http.StatusNotFound)
	}
}

func h7(r *row) {
	id := r.ready()

	lift := r.hold(callKubeconfig)
	defer lift()

	r.want("a bind", r.bind(id, "b", r.binding()), http.StatusAccepted)

	got := r.wantOneOf("an unbind during the creation", r.unbind(id, "b"), http.StatusAccepted, http.StatusUnprocessableEntity)
	if got.Status == http.StatusUnprocessableEntity && got.text("error") != "ConcurrencyError" {
		r.Errorf("it is refused by %s", got.Raw)
	}

	lift()

	if got.Status == http.StatusUnprocessableEntity {
		r.succeeded(bindingPath(id, "b"), "")
		got = r.want("an unbind", r.unbind(id, "b"), http.StatusAccepted)
	}

	r.gone(bindingPath(id, "b"), got.text("operation"))
	r.want("it is gone", r.get(bindingPath(id, "b")), http.StatusNotFound)
}

func h8(r *row) {
	id := r.ready()
	r.bound(id, "b")

	operation := r.want("an unbind", r.unbind(id, "b"), http.StatusAccepted).text("operation")
	if operation == "" || len(operation) > longestOperation {
		r.Errorf("the operation is %q", operation)
	}
}
