package osb

import (
	"net/http"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/environment-broker/environment-broker/test/harness"
)

// phase is where an instance of the model is.
type phase string

const (
	absent   phase = "absent"
	creating phase = "creating"
	ready    phase = "ready"
	updating phase = "updating"
	deleting phase = "deleting"
)

// known is what the model knows of an instance.
type known struct {
	id    string
	phase phase
	// order is the number of the order by which it was made, of those in orders.
	order int
	// most is the most nodes that it has, wanted those that a running update asks for.
	most, wanted int
	// updates tells that it was changed since it was made.
	updates bool
	// operation is the newest, empty if there never was one.
	operation string
	// outcomes are what polls tell of the operations that have ended.
	outcomes map[string]string
	// bindings are the credentials of its bindings, by their ids.
	bindings map[string]string
	// canceled is the call to the Provisioner in which the operation was held that a deletion has canceled, until all is let go.
	canceled string
}

// Outcomes of operations, as polls tell them. A deletion that has succeeded is 410.
const (
	outcomeSucceeded = "succeeded"
	outcomeFailed    = "failed"
	outcomeGone      = "gone"
)

// orders are two orders of the same instance that differ.
func orders() []fields {
	return []fields{
		{"parameters": fields{"region": "eu-west-1", "autoScalerMax": 10}},
		{"parameters": fields{"region": "eu-central-1", "autoScalerMax": 10}},
	}
}

// model compares a broker with what it should be. Nothing that takes its time ends before Release: so the model knows what is under way.
type model struct {
	platform

	instances []*known
	lifts     []func()
	// updates and binds tell whether the catalog offers them, and truly.
	updates, binds bool
}

func newModel(t *rapid.T, l *env) *model {
	m := &model{platform: newVisitor(t, l)}

	for range 2 {
		m.instances = append(m.instances, &known{id: m.newID(), phase: absent, outcomes: map[string]string{}, bindings: map[string]string{}})
	}

	m.eachPlan(func(offering offering, plan plan) {
		if plan.ID == harness.PlanAWS {
			properties, _ := plan.Schemas["service_instance"]["update"].Parameters["properties"].(map[string]any)
			m.updates, m.binds = len(properties) > 0, offering.bindable(plan)
		}
	})

	m.block()

	return m
}

// block holds what takes its time.
func (m *model) block() {
	for _, call := range []string{callOrder, callUpgrade, callRemoval} {
		m.lifts = append(m.lifts, m.hold(call))
	}
}

// unblock lets everything go on.
func (m *model) unblock() {
	for _, lift := range m.lifts {
		lift()
	}

	m.lifts = nil
}

// settle lets everything come to its end, and looks whether it is the right one.
func (m *model) settle() {
	m.Helper()
	m.unblock()

	for _, instance := range m.instances {
		path := harness.InstancePath(instance.id)
		instance.canceled = ""

		switch instance.phase {
		case absent, ready:
		case creating:
			m.succeeded(path, instance.operation)
			instance.end(ready, outcomeSucceeded)
		case updating:
			m.succeeded(path, instance.operation)
			instance.most, instance.updates = instance.wanted, true
			instance.end(ready, outcomeSucceeded)
		case deleting:
			m.want("the end of a deletion", m.ended(path, instance.operation), http.StatusGone)
			instance.end(absent, outcomeGone)
			instance.bindings = map[string]string{}
		}
	}

	m.block()
}

// begin notes an operation that was accepted.
func (k *known) begin(next phase, operation string) {
	k.phase, k.operation = next, operation
}

// end notes that the newest operation has ended.
func (k *known) end(next phase, outcome string) {
	k.phase, k.outcomes[k.operation] = next, outcome
}

// TestModel sends random requests to a broker on each database and compares every answer with a model. SOAK_DURATION has it go on for that long.
func TestModel(t *testing.T) {
	harness.EachDatabase(t, func(t *testing.T, database harness.Database) {
		l := startOn(t, database)

		for deadline := time.Now().Add(harness.SoakDuration(t) / 2); ; { // one half for each database
			rapid.Check(t, func(r *rapid.T) {
				m := newModel(r, l)
				defer m.unblock()

				r.Repeat(m.actions())
				m.settle()
				m.look(r)
			})

			if t.Failed() || !time.Now().Before(deadline) {
				return
			}
		}
	})
}
