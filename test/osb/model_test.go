package osb

import (
	"net/http"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/environment-broker/environment-broker/test/harness"
)

// phase is the state of an instance in the model.
type phase string

const (
	absent   phase = "absent"
	creating phase = "creating"
	ready    phase = "ready"
	updating phase = "updating"
	deleting phase = "deleting"
)

// known is an instance in the model.
type known struct {
	id    string
	phase phase
	// order is the index of its order in orders.
	order int
	// most is its autoScalerMax, wanted that of a running update.
	most, wanted int
	// updates says that it was changed since its creation.
	updates bool
	// operation is the newest operation, or empty.
	operation string
	// outcomes are the results of polls, by operation that has ended.
	outcomes map[string]string
	// bindings are the credentials of its bindings by ID.
	bindings map[string]string
	// canceled is the held call of an operation that a deletion has canceled, until unblock.
	canceled string
}

// Outcomes of operations in polls. A successful deletion is 410.
const (
	outcomeSucceeded = "succeeded"
	outcomeFailed    = "failed"
	outcomeGone      = "gone"
)

// orders are two different orders of an instance.
func orders() []fields {
	return []fields{
		{"parameters": fields{"region": "eu-west-1", "autoScalerMax": 10}},
		{"parameters": fields{"region": "eu-central-1", "autoScalerMax": 10}},
	}
}

// model predicts the responses of a broker. Operations end only in settle, so the model knows which are running.
type model struct {
	platform

	instances []*known
	lifts     []func()
	// updates and binds say whether the catalog offers them.
	updates, binds bool
}

func newModel(t *rapid.T, l *env) *model {
	m := &model{platform: newPlatform(t, l)}

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

// block holds all operations.
func (m *model) block() {
	for _, call := range []string{callOrder, callUpgrade, callRemoval} {
		m.lifts = append(m.lifts, m.hold(call))
	}
}

// unblock lets all operations continue.
func (m *model) unblock() {
	for _, lift := range m.lifts {
		lift()
	}

	m.lifts = nil
}

// settle lets all operations end, and checks their outcomes.
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

// begin records an accepted operation.
func (k *known) begin(next phase, operation string) {
	k.phase, k.operation = next, operation
}

// end records the outcome of the newest operation.
func (k *known) end(next phase, outcome string) {
	k.phase, k.outcomes[k.operation] = next, outcome
}

// TestModel sends random requests to a broker on each database and compares every answer with a model. SOAK_DURATION adds rounds for
// that long.
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
