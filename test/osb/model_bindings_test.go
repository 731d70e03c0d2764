package osb

import (
	"net/http"

	"pgregory.net/rapid"

	"github.com/environment-broker/environment-broker/test/harness"
)

// bindingIDs returns the binding IDs that the model uses for each instance.
func bindingIDs() []string { return []string{"one", "two"} }

func drawBinding(t *rapid.T) string { return rapid.SampledFrom(bindingIDs()).Draw(t, "binding") }

// bindSync creates a binding synchronously.
func (m *model) bindSync(t *rapid.T) {
	instance, id := m.drawInstance(t), drawBinding(t)
	got := m.bindNow(instance.id, id, m.binding())
	m.checkBind(instance, id, got, http.StatusCreated)

	if got.Status == http.StatusCreated {
		instance.bindings[id] = encode(got.Body["credentials"])
	}
}

// checkBind compares the response to a bind with the model. created is the expected status for a new binding.
func (m *model) checkBind(instance *modelInstance, id string, got harness.Reply, created int) {
	m.Helper()

	credentials, bound := instance.bindings[id]

	switch instance.phase {
	case absent:
		m.want("a bind of an unknown instance", got, http.StatusNotFound)
	case creating, deleting:
		m.wantOneOf("a bind while the instance is "+string(instance.phase), got, http.StatusNotFound, http.StatusUnprocessableEntity)
	case ready, updating:
		switch {
		case bound:
			m.want("the same bind", got, http.StatusOK)

			if encode(got.Body["credentials"]) != credentials {
				m.Errorf("a repeated bind returns different credentials")
			}
		case instance.phase == updating:
			m.wantOneOf("a bind during an update", got, created, http.StatusUnprocessableEntity)
		default:
			m.want("a bind", got, created)
		}
	}
}

// bindAsync creates a binding asynchronously, sends further requests for the binding during the operation, and waits until
// the binding is ready.
func (m *model) bindAsync(t *rapid.T) {
	instance, id := m.drawInstance(t), drawBinding(t)
	path := harness.BindingPath(instance.id, id)

	lift := m.hold(callKubeconfig)
	defer lift()

	got := m.bind(instance.id, id, m.binding())
	m.checkBind(instance, id, got, http.StatusAccepted)

	if got.Status != http.StatusAccepted {
		return
	}

	operation := got.Text("operation")

	for range rapid.IntRange(0, 3).Draw(t, "checks") {
		switch rapid.IntRange(0, 3).Draw(t, "check") {
		case 0:
			if again := m.want("the same bind", m.bind(instance.id, id, m.binding()), http.StatusAccepted); again.Raw != got.Raw {
				m.Errorf("a repeated bind returns a different response: %s and %s", got.Raw, again.Raw)
			}
		case 1:
			m.want("a different bind with the same ID", m.bind(instance.id, id, m.binding(fields{
				"parameters": fields{"expiration_seconds": 901},
			})), http.StatusConflict)
		case 2:
			m.want("a fetch during the bind", m.get(path), http.StatusNotFound)
		default:
			m.wantState(m.poll(path, operation), "in progress")
		}
	}

	lift()
	m.wantSucceeded(path, operation)
	instance.bindings[id] = encode(m.want("a fetch", m.get(path), http.StatusOK).Body["credentials"])
}

// unbindAny removes a binding, synchronously or asynchronously.
func (m *model) unbindAny(t *rapid.T) {
	instance, id, async := m.drawInstance(t), drawBinding(t), drawAsync(t)
	path := harness.BindingPath(instance.id, id)

	if instance.phase == deleting {
		t.Skip("the model does not know whether the bindings of an instance in deletion exist")
	}

	_, bound := instance.bindings[id]

	var got harness.Reply
	if async {
		got = m.unbind(instance.id, id)
	} else {
		got = m.do(harness.Call{Method: http.MethodDelete, Path: path + "?" + ids})
	}

	switch {
	case !bound:
		m.want("an unbind of an unknown binding", got, http.StatusGone)

		return
	case got.Status == http.StatusUnprocessableEntity && instance.phase == updating:
		m.want("an unbind during an update", got, http.StatusUnprocessableEntity, "ConcurrencyError")

		return
	case async:
		m.wantGone(path, m.want("an unbind", got, http.StatusAccepted).Text("operation"))
	default:
		m.want("an unbind", got, http.StatusOK)
	}

	delete(instance.bindings, id)
	m.want("a fetch", m.get(path), http.StatusNotFound)
}
