package osb

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
)

func operationRows() map[string]func(*row) {
	return map[string]func(*row){
		"C1": c1, "C2": c2, "C3": c3, "C4": c4, "C5": c5, "C6": c6, "C7": c7, "C8": c8, "C9": c9, "C10": c10, "C11": c11, "C12": c12,
		"C13": c13, "C14": c14, "C15": c15, "C16": c16, "C17": c17, "C18": c18,
	}
}

// c1 leaves out the binds: they can be done at once, and then need nothing (rows G7 and H6).
func c1(r *row) {
	id, unknown := r.ready(), r.newID()

	r.unchanged([]string{instancePath(id), instancePath(unknown)}, func() {
		for _, query := range []string{"", "?accepts_incomplete=false", "?accepts_incomplete=", "?accepts_incomplete"} {
			separator := "?"
			if query != "" {
				separator = "&"
			}

			for _, call := range []call{
				{method: http.MethodPut, path: instancePath(unknown) + query, body: r.order()},
				{method: http.MethodPatch, path: instancePath(id) + query, body: r.patch()},
				{method: http.MethodDelete, path: instancePath(id) + query + separator + ids},
			} {
				r.want(call.method+" "+call.path, r.do(call), http.StatusUnprocessableEntity, "AsyncRequired")
			}
		}
	})
}

func c2(r *row) {
	id := r.newID()
	path := instancePath(id)

	r.succeeded(path, r.want("provision", r.put(id, r.order()), http.StatusAccepted).text("operation"))
	r.succeeded(path, r.want("update", r.update(id, r.patch()), http.StatusAccepted).text("operation"))

	bound := bindingPath(id, "b")
	r.succeeded(bound, r.want("bind", r.bind(id, "b", r.binding()), http.StatusAccepted).text("operation"))
	r.gone(bound, r.want("unbind", r.unbind(id, "b"), http.StatusAccepted).text("operation"))
	r.gone(path, r.want("deprovision", r.remove(id), http.StatusAccepted).text("operation"))
}

func c3(r *row) {
	id := r.ready()

	made := r.want("a bind at once", r.bindNow(id, "b", r.binding()), http.StatusCreated)
	r.reaches("the credentials of the answer work at once", made)

	r.want("an update without effect", r.update(id, encode(fields{"service_id": serviceID})), http.StatusOK)
	r.want("the instance is usable", r.get(instancePath(id)), http.StatusOK)
}

func c4(r *row) {
	lift := r.hold(callOrder)
	defer lift()

	id := r.newID()
	operation := r.want("an order", r.put(id, r.order()), http.StatusAccepted).text("operation")
	r.want("an update while it is made", r.update(id, r.patch()), http.StatusUnprocessableEntity, "ConcurrencyError")

	lift()
	r.succeeded(instancePath(id), operation)

	hold := r.hold(callUpgrade)
	defer hold()

	var (
		answers [2]reply
		both    sync.WaitGroup
	)

	for i := range answers {
		both.Go(func() {
			answers[i] = r.update(id, r.patch(fields{"parameters": fields{"autoScalerMax": 10 + i}}))
		})
	}

	both.Wait()

	statuses := []int{answers[0].Status, answers[1].Status}
	slices.Sort(statuses)

	if !slices.Equal(statuses, []int{http.StatusAccepted, http.StatusUnprocessableEntity}) {
		r.Fatalf("two updates of the same moment: %s and %s", answers[0].Raw, answers[1].Raw)
	}

	for _, answer := range answers {
		if answer.Status == http.StatusUnprocessableEntity && answer.text("error") != "ConcurrencyError" {
			r.Errorf("the second one is refused by %s", answer.Raw)
		}
	}

	if got := r.wantOneOf("a bind during an update", r.bind(id, "b", r.binding()), http.StatusAccepted,
		http.StatusUnprocessableEntity); got.Status == http.StatusUnprocessableEntity && got.text("error") != "ConcurrencyError" {
		r.Errorf("a bind during an update is refused by %s", got.Raw)
	}
}

func c5(r *row) {
	lift := r.hold(callOrder)
	defer lift()

	good, bad := r.newID(), r.newID()
	r.want("an order", r.put(good, r.order()), http.StatusAccepted)

	if state := r.poll(instancePath(good), "").text("state"); state != "in progress" {
		r.Errorf("an order that is held is %q", state)
	}

	lift()
	r.succeeded(instancePath(good), "")

	defer r.refuse(callOrder)()

	r.want("an order", r.put(bad, r.order()), http.StatusAccepted)
	r.failed(instancePath(bad), "")
}

func c6(r *row) {
	id := r.ready()

	for _, malformed := range []string{"rubbish", "00000000-0000-4000-8000-000000000000", "update2"} {
		r.want("a value that was never given out: "+malformed, r.poll(instancePath(id), malformed), http.StatusBadRequest)
	}

	r.want("a query that cannot be read", r.get(instancePath(id)+"/last_operation?operation=%zz"), http.StatusBadRequest)
}

func c7(r *row) {
	for _, operation := range []string{"", "provision", "00000000-0000-4000-8000-000000000000"} {
		r.want("an unknown instance", r.poll(instancePath(r.newID()), operation), http.StatusNotFound)
	}
}

func c8(r *row) {
	id := r.newID()
	made := r.want("an order", r.put(id, r.order()), http.StatusAccepted).text("operation")
	r.succeeded(instancePath(id), made)

	lift := r.hold(callUpgrade)
	defer lift()

	changed := r.want("an update", r.update(id, r.patch()), http.StatusAccepted).text("operation")
	r.want("an update under way", r.poll(instancePath(id), changed), http.StatusOK)
	lift()
	r.succeeded(instancePath(id), changed)

	removed := r.want("a deletion", r.remove(id), http.StatusAccepted).text("operation")
	r.gone(instancePath(id), removed)

	r.want("the deletion has ended", r.poll(instancePath(id), removed), http.StatusGone)

	for _, earlier := range []string{made, changed} {
		r.want("what ended before is no deletion", r.poll(instancePath(id), earlier), http.StatusOK)
	}
}

func c9(r *row) {
	id := r.newID()
	operation := r.want("an order", r.put(id, r.order()), http.StatusAccepted).text("operation")

	encoded := strings.ReplaceAll(fmt.Sprintf("% x", operation), " ", "%")

	for _, query := range []string{
		"", "?operation=" + operation, "?operation=%" + encoded, "?operation=" + operation + "&" + ids, "?" + ids,
		"?operation=" + operation + "&service_id=" + serviceID + "&plan_id=" + planGCP, "?operation=",
	} {
		r.want("a poll with "+query, r.get(instancePath(id)+"/last_operation"+query), http.StatusOK)
	}
}
