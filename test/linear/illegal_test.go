package linear

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/anishathalye/porcupine"
)

// builder builds a history of one instance. Calls added with then follow each other; calls added with meanwhile overlap earlier
// calls.
type builder struct {
	calls []porcupine.Operation
	now   int64
}

// then appends a call that starts after the responses to all earlier calls.
func (s *builder) then(c call, a answer) *builder {
	s.now += 2
	s.add(c, a, s.now, s.now+1)
	s.now++

	return s
}

// meanwhile appends a call that starts at the given time and ends after all calls so far.
func (s *builder) meanwhile(since int64, c call, a answer) *builder {
	s.now++
	s.add(c, a, since, s.now)

	return s
}

func (s *builder) add(c call, a answer, from, to int64) {
	c.request = len(s.calls) + 1
	for _, each := range partsOf(c, a) {
		s.calls = append(s.calls, porcupine.Operation{Input: each, Output: a, Call: from, Return: to})
	}
}

// Calls with typical values.
func ordering(variant int) call { return call{action: order, async: true, variant: variant} }
func updatingTo(n nodes) call   { return call{action: update, async: true, nodes: n} }
func removing() call            { return call{action: remove, async: true} }
func fetching() call            { return call{action: fetch} }
func polling(id string) call    { return call{action: poll, operation: id} }

func binding0(variant int) call     { return call{action: bind, async: true, variant: variant} }
func bindingNow() call              { return call{action: bind} }
func unbinding() call               { return call{action: unbind, async: true} }
func fetchingBinding() call         { return call{action: fetchBinding} }
func pollingBinding(id string) call { return call{action: pollBinding, operation: id} }

// Responses.
func started(id string) answer                { return answer{status: accepted, operation: id} }
func status(status int) answer                { return answer{status: status} }
func concurrent() answer                      { return answer{status: unprocessable, code: concurrency} }
func shown(state string) answer               { return answer{status: ok, state: state} }
func shows(n nodes) answer                    { return answer{status: ok, nodes: n} }
func credentials(status int, c string) answer { return answer{status: status, credentials: c} }

// readyInstance returns a history after which the instance is ready.
func readyInstance() *builder {
	return (&builder{}).then(ordering(0), started("create")).then(polling("create"), shown(succeeded))
}

// boundInstance returns a history after which the instance and binding 0 are ready.
func boundInstance() *builder {
	return readyInstance().then(binding0(0), started("bind")).then(pollingBinding("bind"), shown(succeeded)).
		then(fetchingBinding(), credentials(ok, "k1"))
}

// deletedInstance returns a history after which an instance and its binding are deleted.
func deletedInstance() *builder {
	return boundInstance().then(removing(), started("delete")).then(polling("delete"), shown(succeeded))
}

var (
	initially = initialNodes()
	larger    = nodes{min: 4, max: 12}
	largest   = nodes{min: 4, max: 14}
)

// TestModelRejects checks that the model rejects one history for each rule. Without its last request, each history is legal, so the
// model rejects it because of that request.
func TestModelRejects(t *testing.T) {
	cases := map[string]struct {
		reason  string
		history *builder
	}{
		"lost update": {
			"an update has succeeded, and a fetch shows the old parameters",
			readyInstance().then(updatingTo(nodes{max: 12}), started("update")).then(polling("update"), shown(succeeded)).
				then(fetching(), shows(initially)),
		},
		"lost first update": {
			"the second update of another parameter undoes the first",
			readyInstance().then(updatingTo(nodes{max: 12}), started("u1")).then(polling("u1"), shown(succeeded)).
				then(updatingTo(nodes{min: 5}), started("u2")).then(polling("u2"), shown(succeeded)).
				then(fetching(), shows(nodes{min: 5, max: 10})),
		},
		"early update": {
			"a fetch shows an update, but a later poll reports it as in progress",
			readyInstance().then(updatingTo(nodes{max: 12}), started("update")).then(fetching(), shows(larger)).
				then(polling("update"), shown(inProgress)),
		},
		"update back and forth": {
			"a fetch shows the old parameters after another fetch has shown the new ones",
			readyInstance().then(updatingTo(nodes{max: 12}), started("update")).then(fetching(), shows(larger)).
				then(fetching(), shows(initially)),
		},
		"two updates at once": {
			"an update is accepted although another one is in progress",
			readyInstance().then(updatingTo(nodes{max: 12}), started("u1")).then(polling("u1"), shown(inProgress)).
				then(updatingTo(nodes{max: 14}), started("u2")).then(polling("u1"), shown(inProgress)),
		},
		"repeated update": {
			"the update in progress is accepted again, with a different operation",
			readyInstance().then(updatingTo(nodes{max: 12}), started("u1")).then(updatingTo(nodes{max: 12}), started("u2")),
		},
		"update without effect": {
			"an update to the actual parameters starts an operation",
			readyInstance().then(updatingTo(nodes{max: 10}), started("update")),
		},
		"update ignored": {
			"the response to an update of the parameters says that nothing changed",
			readyInstance().then(updatingTo(nodes{max: 12}), status(ok)),
		},
		"false concurrency": {
			"an update is rejected although no operation is in progress",
			readyInstance().then(updatingTo(nodes{max: 12}), concurrent()),
		},
		"update failed": {
			"an operation fails without a fault or a cancellation",
			readyInstance().then(updatingTo(nodes{max: 12}), started("update")).then(polling("update"), shown(failed)),
		},
		"removal hidden by its ID": {
			"a poll that names a successful removal for an earlier instance with the same ID does not find it",
			boundInstance().then(unbinding(), started("unbind")).then(pollingBinding(""), shown(succeeded)).then(removing(), started("delete")).
				then(polling("delete"), shown(succeeded)).then(ordering(0), started("c2")).then(pollingBinding("unbind"), status(missing)),
		},
		"update of an absent instance": {"an instance that was never ordered is updated", (&builder{}).then(updatingTo(larger), started("update"))},
		"succeeded after it was gone": {
			"the newest operation is the creation, although an earlier response showed the deletion",
			deletedInstance().then(polling(""), shown(inProgress)),
		},
		"deletion undone": {
			"a fetch shows an instance that was deleted", deletedInstance().then(fetching(), shows(initially)),
		},
		"deletion unknown": {
			"the deletion has succeeded, but a poll does not find its operation",
			deletedInstance().then(polling("delete"), status(gone)),
		},
		"deletion restarts": {
			"a poll reports a deletion as in progress after it has succeeded",
			deletedInstance().then(polling("delete"), shown(inProgress)),
		},
		"early deletion": {
			"an update reports that the instance is gone, but a later poll reports the deletion as in progress",
			readyInstance().then(removing(), started("delete")).then(updatingTo(larger), status(missing)).
				then(polling("delete"), shown(inProgress)),
		},
		"deletion twice": {
			"a second deletion starts while the first one is in progress",
			readyInstance().then(removing(), started("d1")).then(removing(), started("d2")),
		},
		"deletion of nothing": {"an instance that was never ordered is deleted", (&builder{}).then(removing(), started("delete"))},
		"fetch during the deletion": {
			"the instance is shown although its deletion was accepted",
			readyInstance().then(removing(), started("delete")).then(fetching(), shows(initially)),
		},
		"canceled operation outlives the deletion": {
			"the canceled update is still in progress after the deletion has succeeded",
			readyInstance().then(updatingTo(nodes{max: 12}), started("update")).then(removing(), started("delete")).
				then(polling("delete"), shown(succeeded)).then(polling("update"), shown(inProgress)),
		},
		"outcome changes": {
			"polls report the canceled update first as failed, and then as succeeded",
			readyInstance().then(updatingTo(nodes{max: 12}), started("update")).then(removing(), started("delete")).
				then(polling("update"), shown(failed)).then(polling("update"), shown(succeeded)),
		},
		"instance too early": {
			"a fetch shows the instance, but a later poll reports its creation as in progress",
			(&builder{}).then(ordering(0), started("create")).then(fetching(), shows(initially)).then(polling("create"), shown(inProgress)),
		},
		"instance disappears": {"a fetch does not find a ready instance", readyInstance().then(fetching(), status(missing))},
		"other order":         {"the instance has the parameters of a different order", readyInstance().then(fetching(), answer{status: ok, variant: 1, nodes: initially})},
		"order twice": {
			"a repeated order starts a second operation while the first one is in progress",
			(&builder{}).then(ordering(0), started("c1")).then(ordering(0), started("c2")),
		},
		"order of a used ID": {"a different order with the ID of the instance is accepted", readyInstance().then(ordering(1), status(ok))},
		"old operation for a new order": {
			"an order after a deletion returns the operation of the deleted instance",
			deletedInstance().then(ordering(0), started("create")),
		},
		"order forgotten": {
			"an order was accepted, but a poll finds no operation",
			(&builder{}).then(ordering(0), started("create")).then(polling(""), status(missing)),
		},
		"synchronous order": {"a synchronous order is accepted", (&builder{}).then(call{action: order}, started("create"))},

		"binding outlives its instance": {
			"a binding still exists after the deletion of its instance", deletedInstance().then(fetchingBinding(), credentials(ok, "k1")),
		},
		"binding's operation outlives its instance": {
			"a poll finds the operation of a binding that was deleted with its instance",
			deletedInstance().then(pollingBinding("bind"), shown(succeeded)),
		},
		"binding ends with its instance": {
			"the binding was deleted with its instance, but a poll without an operation ID reports its creation",
			deletedInstance().then(pollingBinding(""), shown(succeeded)),
		},
		"operation on a previous binding": {
			"the binding was removed and created again, but a poll finds the operation that created the first one",
			boundInstance().then(unbinding(), started("unbind")).then(pollingBinding("unbind"), shown(succeeded)).
				then(binding0(0), started("b2")).then(pollingBinding("bind"), shown(succeeded)),
		},
		"failed bind": {
			"a bind has failed, and a poll of it by its ID shows another state",
			readyInstance().then(binding0(0), started("bind")).then(removing(), started("delete")).
				then(pollingBinding("bind"), shown(failed)).then(pollingBinding(""), shown(inProgress)).
				then(pollingBinding("bind"), shown(inProgress)),
		},
		"removal forgotten": {
			"a removal has succeeded, but a poll does not find its operation",
			boundInstance().then(unbinding(), started("unbind")).then(pollingBinding("unbind"), shown(succeeded)).
				then(pollingBinding(""), status(missing)),
		},
		"binding of a deleted instance": {
			"the instance was deleted and ordered again, but still has a binding of the deleted instance",
			deletedInstance().then(ordering(0), started("c2")).then(polling("c2"), shown(succeeded)).
				then(fetchingBinding(), credentials(ok, "k1")),
		},
		"poll of a deleted instance's binding": {
			"the instance was deleted and ordered again, but a poll finds the operation of a deleted binding",
			deletedInstance().then(ordering(0), started("c2")).then(pollingBinding(""), shown(succeeded)),
		},
		"binding during the deletion": {
			"a binding is shown although the deletion of its instance was accepted",
			boundInstance().then(removing(), started("delete")).then(fetchingBinding(), credentials(ok, "k1")),
		},
		"bind during the deletion": {
			"a bind is accepted during the deletion of the instance",
			readyInstance().then(removing(), started("delete")).then(binding0(0), started("bind")),
		},
		"bind of an absent instance": {"an instance that was never ordered is bound", (&builder{}).then(binding0(0), started("bind"))},
		"credentials change":         {"two fetches show different credentials", boundInstance().then(fetchingBinding(), credentials(ok, "k2"))},
		"repeated bind":              {"a repeated bind returns different credentials", boundInstance().then(binding0(0), credentials(ok, "k2"))},
		"bind twice": {
			"a repeated bind starts a second operation while the first one is in progress",
			readyInstance().then(binding0(0), started("b1")).then(binding0(0), started("b2")),
		},
		"bind of a used ID":  {"a different bind with the ID of the binding is accepted", boundInstance().then(binding0(1), credentials(ok, "k1"))},
		"binding disappears": {"a fetch does not find a ready binding", boundInstance().then(fetchingBinding(), status(missing))},
		"binding too early": {
			"a fetch shows the binding, but a later poll reports the bind as in progress",
			readyInstance().then(binding0(0), started("bind")).then(fetchingBinding(), credentials(ok, "k1")).
				then(pollingBinding("bind"), shown(inProgress)),
		},
		"binding after its removal": {
			"a fetch shows a binding whose removal has succeeded",
			boundInstance().then(unbinding(), started("unbind")).then(pollingBinding("unbind"), shown(succeeded)).
				then(fetchingBinding(), credentials(ok, "k1")),
		},
		"binding during its removal": {
			"a fetch shows a binding whose removal was accepted",
			boundInstance().then(unbinding(), started("unbind")).then(fetchingBinding(), credentials(ok, "k1")),
		},
		"binding gone too early": {
			"an unbind says that the binding is gone, and a later poll that its removal is in progress",
			boundInstance().then(unbinding(), started("unbind")).then(unbinding(), status(gone)).
				then(pollingBinding("unbind"), shown(inProgress)),
		},
		"unbind twice": {
			"a second unbind starts while the first one is in progress",
			boundInstance().then(unbinding(), started("u1")).then(unbinding(), started("u2")),
		},
		"unbind without effect": {
			"an unbind reports that the binding is gone, although no request removed it", boundInstance().then(unbinding(), status(gone)),
		},
		"synchronous bind of a removed binding": {
			"a bind returns credentials of an earlier binding: the binding was removed and created again before the request was sent",
			boundInstance().then(unbinding(), started("unbind")).then(pollingBinding("unbind"), shown(succeeded)).
				then(binding0(0), started("b2")).then(pollingBinding("b2"), shown(succeeded)).then(fetchingBinding(), credentials(ok, "k2")).
				then(bindingNow(), credentials(created, "k1")),
		},
		"synchronous bind without a binding": {
			"a bind has returned credentials, but a fetch does not find the binding",
			readyInstance().then(bindingNow(), credentials(created, "k1")).then(fetchingBinding(), status(missing)),
		},
		"synchronous bind fails without a reason": {
			"a bind reports that the binding was removed, although no request removed it",
			readyInstance().then(bindingNow(), answer{status: conflict, text: textBindingGone}),
		},
		"synchronous unbind without effect": {
			"an unbind has ended, but a fetch shows the binding",
			boundInstance().then(call{action: unbind}, status(ok)).then(fetchingBinding(), credentials(ok, "k1")),
		},
	}

	for _, name := range slices.Sorted(maps.Keys(cases)) {
		t.Run(name, func(t *testing.T) {
			c := cases[name]
			calls := c.history.calls

			if !porcupine.CheckOperations(model(), calls[:lastRequest(calls)]) {
				t.Error("the history is illegal even without its last call")
			}

			if porcupine.CheckOperations(model(), calls) {
				t.Errorf("the model accepts a history in which %s", c.reason)
			}
		})
	}
}

// lastRequest returns the index of the first part of the last request.
func lastRequest(calls []porcupine.Operation) int {
	last := input(calls[len(calls)-1]).request

	return slices.IndexFunc(calls, func(each porcupine.Operation) bool { return input(each).request == last })
}

// TestModelAccepts checks that the model accepts histories of concurrent calls that a correct broker can produce.
func TestModelAccepts(t *testing.T) {
	cases := map[string]struct {
		reason  string
		history *builder
	}{
		"lifecycle": {
			"an instance with a binding is created, updated and deleted",
			deletedInstance().then(polling(""), shown(succeeded)).then(fetching(), status(missing)).then(pollingBinding(""), status(missing)).
				then(removing(), status(gone)).then(ordering(1), started("c2")),
		},
		"removal for an earlier instance": {
			"without its ID, a poll no longer finds the removal of a binding of an earlier instance with the same ID",
			boundInstance().then(unbinding(), started("unbind")).then(pollingBinding(""), shown(succeeded)).then(removing(), started("delete")).
				then(polling("delete"), shown(succeeded)).then(pollingBinding(""), shown(succeeded)).then(ordering(0), started("c2")).
				then(pollingBinding(""), status(missing)).then(pollingBinding("unbind"), shown(succeeded)).then(polling("c2"), shown(succeeded)).
				then(binding0(0), started("b2")).then(pollingBinding(""), shown(succeeded)),
		},
		"fetch during the end of an update": {
			"two fetches overlap, and the one that started later shows the old parameters",
			readyInstance().then(updatingTo(nodes{max: 12}), started("update")).then(fetching(), shows(initially)).
				meanwhile(4, fetching(), shows(larger)).meanwhile(10, fetching(), shows(initially)),
		},
		"order during the end of a deletion": {
			"the ID is free as soon as the deletion has ended",
			readyInstance().then(removing(), started("delete")).then(ordering(0), concurrent()).then(ordering(0), started("c2")).
				then(polling("delete"), shown(succeeded)),
		},
		"canceled creation": {
			"a deletion cancels the creation, which may already have ended",
			(&builder{}).then(ordering(0), started("create")).then(removing(), started("delete")).then(polling("create"), shown(inProgress)).
				then(polling("create"), shown(failed)),
		},
		"creation that ended before the deletion": {
			"the creation has succeeded although no response showed it",
			(&builder{}).then(ordering(0), started("create")).then(removing(), started("delete")).then(polling("create"), shown(succeeded)),
		},
		"bind overtaken by a deletion": {
			"the deletion of the instance cancels the bind, and the waiting request returns 409",
			readyInstance().then(removing(), started("delete")).
				meanwhile(5, bindingNow(), answer{status: conflict, text: textBindingGone}).then(polling("delete"), shown(succeeded)),
		},
		"binding cleaned up during a deletion": {
			"the deletion of the instance cancels the bind, and the broker removes the binding without a request",
			readyInstance().then(binding0(0), started("bind")).then(removing(), started("delete")).
				then(pollingBinding("bind"), shown(failed)).then(pollingBinding(""), shown(inProgress)).
				then(pollingBinding(""), shown(succeeded)).then(unbinding(), status(gone)),
		},
		"binding cleaned up before the end of a deletion": {
			"a poll shows the removal after the instance is gone",
			readyInstance().then(binding0(0), started("bind")).then(removing(), started("delete")).
				then(pollingBinding("bind"), shown(failed)).then(polling("delete"), shown(succeeded)).
				then(pollingBinding(""), shown(succeeded)),
		},
		"bind overtaken by an unbind": {
			"the unbind cancels the bind",
			readyInstance().then(unbinding(), started("unbind")).meanwhile(5, bindingNow(), answer{status: conflict, text: textBindingGone}).
				then(pollingBinding("unbind"), shown(succeeded)).then(fetchingBinding(), status(missing)),
		},
		"unbind overtaken by a deletion": {
			"the unbind has begun when another request binds, and the deletion of the instance prevents its end",
			boundInstance().then(binding0(1), concurrent()).then(removing(), started("delete")).
				meanwhile(4, call{action: unbind}, answer{status: unprocessable, code: concurrency, text: textOvertaken}),
		},
		"bind joined by another": {
			"a synchronous and an asynchronous bind share an operation, and only the asynchronous response shows its ID",
			readyInstance().then(binding0(0), started("bind")).meanwhile(5, bindingNow(), credentials(created, "k1")).
				then(pollingBinding("bind"), shown(succeeded)).then(binding0(0), credentials(ok, "k1")),
		},
		"removal that ends during a deletion": {
			"a binding is gone, although the deletion of its instance may still be in progress",
			boundInstance().then(unbinding(), started("unbind")).then(removing(), started("delete")).then(unbinding(), status(gone)).
				then(updatingTo(larger), concurrent()).then(polling("delete"), shown(inProgress)),
		},
		"removal that outlives the deletion": {
			"an unbind finds no binding because the instance is gone, and the earlier unbind is still in progress",
			boundInstance().then(unbinding(), started("unbind")).then(removing(), started("delete")).then(unbinding(), status(gone)).
				then(polling("delete"), shown(succeeded)).then(pollingBinding(""), shown(inProgress)).
				then(pollingBinding("unbind"), shown(succeeded)),
		},
		"update after an update that nobody polled": {
			"the second update shows that the first one has ended",
			readyInstance().then(updatingTo(nodes{max: 12}), started("u1")).then(updatingTo(nodes{max: 14}), started("u2")).
				then(fetching(), shows(larger)).then(fetching(), shows(largest)).then(polling("u1"), shown(succeeded)),
		},
	}

	for _, name := range slices.Sorted(maps.Keys(cases)) {
		t.Run(name, func(t *testing.T) {
			calls := cases[name].history.calls
			if result, info := porcupine.CheckOperationsVerbose(model(), calls, checkLimit); result != porcupine.Ok {
				t.Errorf("%s: %s", cases[name].reason, explain(calls, info))
			}
		})
	}
}

// TestShortest checks that the explanation of a long history ends with the illegal call.
func TestShortest(t *testing.T) {
	s := readyInstance()
	for i := range 50 {
		s.then(polling(""), shown(succeeded))

		if i == 20 {
			s.then(fetching(), status(missing))
		}
	}

	smallest := shortest(s.calls)
	if last := output(smallest[len(smallest)-1]); last.status != missing {
		t.Errorf("the shortest illegal history ends with %s", last)
	}

	_, info := porcupine.CheckOperationsVerbose(model(), smallest, checkLimit)
	if text := explain(smallest, info); !strings.Contains(text, "fetch → 404: want 200 with variant 0") {
		t.Error(text)
	}
}
