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
	// order is the index of its accepted order in orders.
	order int
	// most is its autoScalerMax, wanted that of a running update.
	most, wanted int
	// updates reports whether it was updated since its creation.
	updates bool
	// operation is the newest operation, or empty.
	operation string
	// outcomes are the final states of ended operations by ID, as polls report them.
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

// orders returns two orders that differ in their region.
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
	// updates and binds report whether the catalog allows them.
	updates, binds bool
}

func newModel(t *rapid.T, e *env) *model {
	m := &model{platform: newPlatform(t, e)}

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

// block holds all calls to the Provisioner, so that no operation ends.
func (m *model) block() {
	for _, call := range []string{callOrder, callUpgrade, callRemoval} {
		m.lifts = append(m.lifts, m.hold(call))
	}
}

// unblock releases all held calls.
func (m *model) unblock() {
	for _, lift := range m.lifts {
		lift()
	}

	m.lifts = nil
}

// settle lets all operations end and checks their outcomes. Afterwards it blocks again.
func (m *model) settle() {
	m.Helper()
	m.unblock()

	for _, instance := range m.instances {
		path := harness.InstancePath(instance.id)
		instance.canceled = ""

		switch instance.phase {
		case absent, ready:
		case creating:
			m.wantSucceeded(path, instance.operation)
			instance.end(ready, outcomeSucceeded)
		case updating:
			m.wantSucceeded(path, instance.operation)
			instance.most, instance.updates = instance.wanted, true
			instance.end(ready, outcomeSucceeded)
		case deleting:
			m.want("the end of a deletion", m.waitForEnd(path, instance.operation), http.StatusGone)
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

// TestModel sends random requests to a broker on each database and compares every response with a model. SOAK_DURATION adds rounds for
// that long.
func TestModel(t *testing.T) {
	harness.EachDatabase(t, func(t *testing.T, database harness.Database) {
		e := startOn(t, database)

		for deadline := time.Now().Add(harness.SoakDuration(t) / 2); ; { // half of the time for each database
			rapid.Check(t, func(r *rapid.T) {
				m := newModel(r, e)
				defer m.unblock()

				r.Repeat(m.actions())
				m.settle()
				m.compare(r)
			})

			if t.Failed() || !time.Now().Before(deadline) {
				return
			}
		}
	})
}
