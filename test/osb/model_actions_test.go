package osb

import (
	"net/http"

	"pgregory.net/rapid"

	"github.com/environment-broker/environment-broker/test/harness"
)

// actions are the random actions on a broker.
func (m *model) actions() map[string]func(*rapid.T) {
	actions := map[string]func(*rapid.T){
		"": m.compare, "order": m.orderAny, "delete": m.deleteAny, "poll": m.pollAny, "settle": func(*rapid.T) { m.settle() },
		"order and delete": m.orderAndDelete,
	}

	if m.updates {
		actions["update"] = m.updateAny
	}

	if m.binds {
		actions["bind synchronously"], actions["bind asynchronously"], actions["unbind"] = m.bindSync, m.bindAsync, m.unbindAny
	}

	return actions
}

func (m *model) any(t *rapid.T) *known { return rapid.SampledFrom(m.instances).Draw(t, "instance") }

// waits draws whether the platform accepts an asynchronous operation. Most do.
func waits(t *rapid.T) bool { return rapid.IntRange(0, 4).Draw(t, "waits") > 0 }

// compare compares the broker with the model.
func (m *model) compare(_ *rapid.T) {
	for _, instance := range m.instances {
		got := m.get(harness.InstancePath(instance.id))

		switch instance.phase {
		case absent, creating:
			m.want("a fetch of an instance that is "+string(instance.phase), got, http.StatusNotFound)
		case deleting:
			m.want("a fetch during the deletion", got, http.StatusUnprocessableEntity, "ConcurrencyError")
		case ready, updating:
			m.want("a fetch of an instance that is "+string(instance.phase), got, http.StatusOK)

			if most := got.Object("parameters")["autoScalerMax"]; most != float64(instance.most) {
				m.Errorf("autoScalerMax is %v, want %d: %s", most, instance.most, got.Raw)
			}
		}

		if instance.phase == absent || instance.phase == deleting {
			continue
		}

		for id, credentials := range instance.bindings {
			got := m.want("a fetch of a binding", m.get(harness.BindingPath(instance.id, id)), http.StatusOK)
			if encode(got.Body["credentials"]) != credentials {
				m.Errorf("a fetch returns other credentials than the bind")
			}
		}
	}
}

// orderAny orders an instance: a new one, the same again, or a different one with the same ID.
func (m *model) orderAny(t *rapid.T) {
	instance, number, waits := m.any(t), rapid.IntRange(0, 1).Draw(t, "order"), waits(t)
	path := harness.InstancePath(instance.id)

	if waits {
		path += harness.Incomplete
	}

	got := m.do(harness.Call{Method: http.MethodPut, Path: path, Body: m.order(orders()[number])})
	same := number == instance.order

	switch {
	case instance.phase == deleting:
		m.want("an order during the deletion", got, http.StatusUnprocessableEntity, "ConcurrencyError")
	case instance.phase == absent && waits:
		m.want("a new order", got, http.StatusAccepted)
		instance.begin(creating, got.Text("operation"))
		instance.order, instance.most, instance.updates = number, 10, false
	case instance.phase == absent || instance.phase == creating && same && !waits:
		m.want("a synchronous order", got, http.StatusUnprocessableEntity, "AsyncRequired")
	case !same:
		m.want("a different order with the same ID", got, http.StatusConflict)
	case instance.phase == creating:
		m.want("the same order", got, http.StatusAccepted)
		m.wantSameOperation(instance, got)
	case instance.updates:
		m.wantOneOf("the same order after an update", got, http.StatusOK, http.StatusConflict)
	default:
		m.want("the same order for a ready instance", got, http.StatusOK)
	}
}

func (m *model) wantSameOperation(instance *known, got harness.Reply) {
	m.Helper()

	if got.Text("operation") != instance.operation {
		m.Errorf("a repeated request returns operation %q, want %q", got.Text("operation"), instance.operation)
	}
}

func (m *model) deleteAny(t *rapid.T) {
	instance, waits := m.any(t), waits(t)
	query := "?" + ids

	if waits {
		query = harness.Incomplete + "&" + ids
	}

	// A creation or an update that has not reached the Provisioner ends immediately, and so may the deletion: row J8.
	held := m.reached(instance)

	got := m.do(harness.Call{Method: http.MethodDelete, Path: harness.InstancePath(instance.id) + query})

	switch {
	case instance.phase == absent:
		m.want("a deletion of an unknown instance", got, http.StatusGone)
	case !waits:
		m.want("a deletion that may not take its time", got, http.StatusUnprocessableEntity, "AsyncRequired")
	case instance.phase == deleting:
		m.want("the same deletion", got, http.StatusAccepted)
		m.wantSameOperation(instance, got)
	default:
		m.want("a deletion", got, http.StatusAccepted)

		if instance.phase != ready {
			instance.outcomes[instance.operation] = outcomeFailed
		}

		instance.canceled = held
		instance.begin(deleting, got.Text("operation"))
	}
}

// reached waits until the running operation is held at its call to the Provisioner, and returns that call.
func (m *model) reached(instance *known) (call string) {
	m.Helper()

	calls := map[phase]string{creating: callOrder, updating: callUpgrade}
	if call = calls[instance.phase]; call == "" {
		return ""
	}

	holding := 0

	for _, each := range m.instances {
		if calls[each.phase] == call || each.canceled == call {
			holding++
		}
	}

	m.until("the call to the Provisioner", func() bool { return m.Proxy.Held(harness.Match{Tenant: m.tenant, Operation: call}) >= holding })

	return call
}

// orderAndDelete orders an instance and deletes it immediately.
func (m *model) orderAndDelete(t *rapid.T) {
	instance := m.any(t)
	if instance.phase != absent {
		t.Skip("the instance exists")
	}

	made := m.want("a new order", m.put(instance.id, m.order(orders()[0])), http.StatusAccepted).Text("operation")
	got := m.want("a deletion right after it", m.remove(instance.id), http.StatusAccepted)

	instance.outcomes[made] = outcomeFailed
	instance.begin(deleting, got.Text("operation"))
	m.settle()
}

// pollAny polls each known operation by ID, and the newest also without an ID.
func (m *model) pollAny(t *rapid.T) {
	instance := m.any(t)
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
			m.want("a poll of an ended deletion", got, http.StatusGone)
		case outcome == outcomeFailed && instance.phase == deleting:
			m.want("a poll of an operation in cancellation", got, http.StatusOK)
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

// updateAny changes the number of nodes.
func (m *model) updateAny(t *rapid.T) {
	instance, most, waits := m.any(t), rapid.IntRange(10, 12).Draw(t, "most"), waits(t)
	path := harness.InstancePath(instance.id)

	if waits {
		path += harness.Incomplete
	}

	got := m.do(harness.Call{Method: http.MethodPatch, Path: path, Body: m.patch(fields{"parameters": fields{"autoScalerMax": most}})})

	switch {
	case instance.phase == absent:
		m.want("an update of an unknown instance", got, http.StatusNotFound)
	case instance.phase == deleting:
		m.wantOneOf("an update during the deletion", got, http.StatusUnprocessableEntity, http.StatusNotFound)
	case instance.phase == creating:
		m.want("an update during the creation", got, http.StatusUnprocessableEntity)
	case instance.phase == ready && most == instance.most:
		m.want("an update without effect", got, http.StatusOK)
	case instance.phase == ready && waits:
		m.want("an update", got, http.StatusAccepted)
		instance.begin(updating, got.Text("operation"))
		instance.wanted = most
	case instance.phase == ready:
		m.want("a synchronous update", got, http.StatusUnprocessableEntity, "AsyncRequired")
	case most == instance.wanted && waits:
		m.want("the same update", got, http.StatusAccepted)
		m.wantSameOperation(instance, got)
	case most == instance.most:
		m.wantOneOf("an update back to the actual state, during another", got, http.StatusUnprocessableEntity, http.StatusOK)
	default:
		m.want("another update", got, http.StatusUnprocessableEntity)
	}
}
