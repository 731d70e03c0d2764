package osb

import (
	"net/http"

	"pgregory.net/rapid"

	"github.com/environment-broker/environment-broker/test/harness"
)

// actions returns the actions by name. rapid repeats them in random order, and calls the action without a name after each of
// the others.
func (m *model) actions() map[string]func(*rapid.T) {
	return map[string]func(*rapid.T){
		"": m.compare, "order": m.orderAny, "delete": m.deleteAny, "poll": m.pollAny, "settle": func(*rapid.T) { m.endOperations() },
		"create": m.create, "order and delete": m.orderAndDelete, "update": m.updateAny, "update again": m.updateAny,
		"bind synchronously": m.bindSync, "bind asynchronously": m.bindAsync, "unbind": m.unbindAny,
	}
}

func (m *model) drawInstance(t *rapid.T) *modelInstance {
	return rapid.SampledFrom(m.instances).Draw(t, "instance")
}

// drawAsync draws whether the platform accepts an asynchronous operation. Most requests do.
func drawAsync(t *rapid.T) bool { return rapid.IntRange(0, 4).Draw(t, "async") > 0 }

// compare fetches all instances and bindings, and compares the responses with the model.
func (m *model) compare(_ *rapid.T) {
	for _, instance := range m.instances {
		got := m.get(harness.InstancePath(instance.id))

		switch instance.phase {
		case absent, creating:
			m.want("a fetch of an instance in phase "+string(instance.phase), got, http.StatusNotFound)
		case deleting:
			m.want("a fetch during the deletion", got, http.StatusUnprocessableEntity, "ConcurrencyError")
		case ready, updating:
			m.want("a fetch of an instance in phase "+string(instance.phase), got, http.StatusOK)

			if maximum := got.Object("parameters")["autoScalerMax"]; maximum != float64(instance.autoScalerMax) {
				m.Errorf("autoScalerMax is %v, want %d: %s", maximum, instance.autoScalerMax, got.Raw)
			}
		}

		if instance.phase == absent || instance.phase == deleting {
			continue
		}

		for id, credentials := range instance.bindings {
			got := m.want("a fetch of a binding", m.get(harness.BindingPath(instance.id, id)), http.StatusOK)
			if encode(got.Body["credentials"]) != credentials {
				m.Errorf("a fetch and the bind return different credentials")
			}
		}
	}
}

// orderAny orders an instance with a new or an existing ID. An order with an existing ID may equal the accepted order or differ
// from it. orderAny may repeat the request.
func (m *model) orderAny(t *rapid.T) {
	instance, number := m.drawInstance(t), rapid.IntRange(0, 1).Draw(t, "order")

	for range rapid.IntRange(1, 2).Draw(t, "requests") {
		m.orderOnce(instance, number, drawAsync(t))
	}
}

func (m *model) orderOnce(instance *modelInstance, number int, async bool) {
	path := harness.InstancePath(instance.id)

	if async {
		path += harness.Incomplete
	}

	got := m.do(harness.Call{Method: http.MethodPut, Path: path, Body: m.order(orders()[number])})
	same := number == instance.order

	switch {
	case instance.phase == deleting:
		m.want("an order during the deletion", got, http.StatusUnprocessableEntity, "ConcurrencyError")
	case instance.phase == absent && async:
		m.want("a new order", got, http.StatusAccepted)
		instance.start(creating, got.Text("operation"))
		instance.order, instance.autoScalerMax, instance.updated = number, 10, false
	case instance.phase == absent || instance.phase == creating && same && !async:
		m.want("a synchronous order", got, http.StatusUnprocessableEntity, "AsyncRequired")
	case !same:
		m.want("a different order with the same ID", got, http.StatusConflict)
	case instance.phase == creating:
		m.want("the same order", got, http.StatusAccepted)
		m.wantSameOperation(instance, got)
	case instance.updated:
		m.wantOneOf("the same order after an update", got, http.StatusOK, http.StatusConflict)
	default:
		m.want("the same order for a ready instance", got, http.StatusOK)
	}
}

func (m *model) wantSameOperation(instance *modelInstance, got harness.Reply) {
	m.Helper()

	if got.Text("operation") != instance.operation {
		m.Errorf("a repeated request returns operation %q, want %q", got.Text("operation"), instance.operation)
	}
}

// create orders an instance and waits until it is ready. Without this action few instances would become ready, because an order
// and the end of its operation are separate actions.
func (m *model) create(t *rapid.T) {
	instance, number := m.drawInstance(t), rapid.IntRange(0, 1).Draw(t, "order")
	if instance.phase != absent {
		t.Skip("the instance exists")
	}

	got := m.want("a new order", m.put(instance.id, m.order(orders()[number])), http.StatusAccepted)
	instance.start(creating, got.Text("operation"))
	instance.order, instance.autoScalerMax, instance.updated = number, 10, false
	m.endOperations()
}

// deleteAny deletes an instance. It may repeat the request.
func (m *model) deleteAny(t *rapid.T) {
	instance := m.drawInstance(t)

	for range rapid.IntRange(1, 2).Draw(t, "requests") {
		m.deleteOnce(instance, drawAsync(t))
	}
}

func (m *model) deleteOnce(instance *modelInstance, async bool) {
	query := "?" + ids

	if async {
		query = harness.Incomplete + "&" + ids
	}

	// The deletion cancels a creation or an update. Wait until the call of that operation is held. Otherwise the operation
	// could end before the deletion arrives, and the deletion could end immediately.
	canceledCall := m.waitForCall(instance)

	got := m.do(harness.Call{Method: http.MethodDelete, Path: harness.InstancePath(instance.id) + query})

	switch {
	case instance.phase == absent:
		m.want("a deletion of an unknown instance", got, http.StatusGone)
	case !async:
		m.want("a synchronous deletion", got, http.StatusUnprocessableEntity, "AsyncRequired")
	case instance.phase == deleting:
		m.want("the same deletion", got, http.StatusAccepted)
		m.wantSameOperation(instance, got)
	default:
		m.want("a deletion", got, http.StatusAccepted)

		if instance.phase != ready {
			instance.outcomes[instance.operation] = outcomeFailed
		}

		instance.canceled = canceledCall
		instance.start(deleting, got.Text("operation"))
	}
}

// waitForCall waits until the operation in progress is held at its call to the Provisioner, and returns the name of that call.
func (m *model) waitForCall(instance *modelInstance) (call string) {
	m.Helper()

	calls := map[phase]string{creating: callOrder, updating: callUpgrade}
	if call = calls[instance.phase]; call == "" {
		return ""
	}

	holds := 0

	for _, each := range m.instances {
		if calls[each.phase] == call || each.canceled == call {
			holds++
		}
	}

	m.until("the call to the Provisioner", func() bool { return m.Proxy.Held(harness.Match{Tenant: m.tenant, Operation: call}) >= holds })

	return call
}

// orderAndDelete orders an instance and deletes it immediately.
func (m *model) orderAndDelete(t *rapid.T) {
	instance := m.drawInstance(t)
	if instance.phase != absent || rapid.IntRange(0, 3).Draw(t, "rarely") > 0 {
		t.Skip("the instance exists, or the action is skipped to keep it rare")
	}

	created := m.want("a new order", m.put(instance.id, m.order(orders()[0])), http.StatusAccepted).Text("operation")
	got := m.want("a deletion right after it", m.remove(instance.id), http.StatusAccepted)

	instance.outcomes[created] = outcomeFailed
	instance.start(deleting, got.Text("operation"))
	m.endOperations()
}

// pollAny polls each known operation of an instance by ID, and the newest operation also without an ID.
func (m *model) pollAny(t *rapid.T) {
	instance := m.drawInstance(t)
	polled := []string{""}

	if instance.operation != "" {
		polled = append(polled, instance.operation)
	}

	for operation := range instance.outcomes {
		polled = append(polled, operation)
	}

	for _, operation := range polled {
		got := m.poll(harness.InstancePath(instance.id), operation)

		if operation == "" {
			operation = instance.operation
		}

		outcome, ended := instance.outcomes[operation]

		switch {
		case operation == "":
			m.want("a poll of an unknown instance", got, http.StatusNotFound)
		case !ended:
			m.wantState(got, "in progress")
		case outcome == outcomeGone:
			m.wantState(got, "succeeded")
		case outcome == outcomeFailed && instance.phase == deleting:
			m.want("a poll of an operation that is being canceled", got, http.StatusOK)
		default:
			m.wantState(got, outcome)
		}
	}
}

func (m *model) wantState(got harness.Reply, state string) {
	m.Helper()

	if got.Status != http.StatusOK || got.Text("state") != state {
		m.Errorf("a poll returns %d %s, want %q", got.Status, got.Raw, state)
	}
}

// updateAny changes the maximum number of nodes of an instance. It may repeat the request.
func (m *model) updateAny(t *rapid.T) {
	instance, maximum := m.drawInstance(t), rapid.IntRange(10, 12).Draw(t, "most")

	for range rapid.IntRange(1, 2).Draw(t, "requests") {
		m.updateOnce(instance, maximum, drawAsync(t))
	}
}

func (m *model) updateOnce(instance *modelInstance, maximum int, async bool) {
	path := harness.InstancePath(instance.id)

	if async {
		path += harness.Incomplete
	}

	got := m.do(harness.Call{Method: http.MethodPatch, Path: path, Body: m.patch(fields{"parameters": fields{"autoScalerMax": maximum}})})

	switch {
	case instance.phase == absent:
		m.want("an update of an unknown instance", got, http.StatusNotFound)
	case instance.phase == deleting:
		m.wantOneOf("an update during the deletion", got, http.StatusUnprocessableEntity, http.StatusNotFound)
	case instance.phase == creating:
		m.want("an update during the creation", got, http.StatusUnprocessableEntity)
	case instance.phase == ready && maximum == instance.autoScalerMax:
		m.want("an update without effect", got, http.StatusOK)
	case instance.phase == ready && async:
		m.want("an update", got, http.StatusAccepted)
		instance.start(updating, got.Text("operation"))
		instance.updatedMax = maximum
	case instance.phase == ready:
		m.want("a synchronous update", got, http.StatusUnprocessableEntity, "AsyncRequired")
	case maximum == instance.updatedMax && !async:
		m.want("the same update, synchronously", got, http.StatusUnprocessableEntity, "AsyncRequired")
	case maximum == instance.updatedMax:
		m.want("the same update", got, http.StatusAccepted)
		m.wantSameOperation(instance, got)
	case maximum == instance.autoScalerMax:
		m.wantOneOf("an update back to the actual state, during another update", got, http.StatusUnprocessableEntity, http.StatusOK)
	default:
		m.want("a different update", got, http.StatusUnprocessableEntity)
	}
}
