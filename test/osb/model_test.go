package osb

import (
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

// modelInstance is an instance in the model.
type modelInstance struct {
	id    string
	phase phase
	// order is the index of the accepted order in orders.
	order int
	// autoScalerMax is the maximum of nodes, and updatedMax the maximum after the update in progress.
	autoScalerMax, updatedMax int
	// updated reports whether the instance was updated since its creation.
	updated bool
	// operation is the ID of the newest operation, or empty.
	operation string
	// outcomes has the final states of ended operations, as polls report them, by the ID of the operation.
	outcomes map[string]string
	// bindings has the credentials of the bindings, by the ID of the binding.
	bindings map[string]string
	// canceled is the name of the call that a canceled operation has sent and that is still held, or empty.
	canceled string
}

// Outcomes of operations, as polls report them. A poll of a successful deletion returns succeeded.
const (
	outcomeSucceeded = "succeeded"
	outcomeFailed    = "failed"
	outcomeGone      = "gone"
)

// orders returns two orders with different regions.
func orders() []fields {
	return []fields{
		{"parameters": fields{"region": "eu-west-1", "autoScalerMax": 10}},
		{"parameters": fields{"region": "eu-central-1", "autoScalerMax": 10}},
	}
}

// model predicts the responses of a broker. Operations end only in endOperations, so that the model knows which operations are in
// progress.
type model struct {
	platform

	instances []*modelInstance
	lifts     []func()
	// updates and binds report whether the catalog allows updates and bindings of the plan.
	updates, binds bool
}

func newModel(t *rapid.T, e *env) *model {
	m := &model{platform: newPlatform(t, e)}

	for range 2 {
		m.instances = append(m.instances, &modelInstance{id: m.newID(), phase: absent, outcomes: map[string]string{}, bindings: map[string]string{}})
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

// block holds all calls that start operations of the Provisioner, so that no operation of the broker ends.
func (m *model) block() {
	for _, call := range []string{callOrder, callUpgrade, callRemoval} {
		m.lifts = append(m.lifts, m.hold(call))
	}
}

// unblock forwards all held calls.
func (m *model) unblock() {
	for _, lift := range m.lifts {
		lift()
	}

	m.lifts = nil
}

// endOperations unblocks the calls to the Provisioner, waits until all operations have ended, and checks their outcomes.
// Afterwards it blocks the calls again.
func (m *model) endOperations() {
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
			instance.autoScalerMax, instance.updated = instance.updatedMax, true
			instance.end(ready, outcomeSucceeded)
		case deleting:
			m.wantSucceeded(path, instance.operation)
			instance.end(absent, outcomeGone)
			instance.bindings = map[string]string{}
		}
	}

	m.block()
}

// start records an accepted operation.
func (i *modelInstance) start(next phase, operation string) {
	i.phase, i.operation = next, operation
}

// end records the outcome of the newest operation.
func (i *modelInstance) end(next phase, outcome string) {
	i.phase, i.outcomes[i.operation] = next, outcome
}

// TestModel sends random requests to a broker on each database and compares every response with a model. SOAK_DURATION sets
// how long the test adds rounds.
func TestModel(t *testing.T) {
	harness.EachDatabase(t, func(t *testing.T, database harness.Database) {
		e := startOn(t, database)

		for deadline := time.Now().Add(harness.SoakDuration(t) / 2); ; { // half of the time for each database
			rapid.Check(t, func(r *rapid.T) {
				m := newModel(r, e)
				defer m.unblock()

				r.Repeat(m.actions())
				m.endOperations()
				m.compare(r)
			})

			if t.Failed() || !time.Now().Before(deadline) {
				return
			}
		}
	})
}
