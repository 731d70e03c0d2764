package osb

import (
	"slices"
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
	// order is the index of the accepted order in the slice that orders returns.
	order int
	// autoScalerMax is the maximum number of nodes. updatedMax is the maximum after the update in progress.
	autoScalerMax, updatedMax int
	// updated reports whether the instance was updated since its creation.
	updated bool
	// operation is the ID of the newest operation, or empty.
	operation string
	// outcomes maps the IDs of ended operations to their final states, as reported by polls.
	outcomes map[string]string
	// bindings maps the IDs of bindings to their credentials.
	bindings map[string]string
	// canceled is the name of the held call of a canceled operation. It is empty if no such call is held.
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
	// counts is the number of checked responses for each reason.
	counts map[string]int
}

// newModel returns a model without instances. It fails unless the plan allows updates and bindings, which the model must
// exercise.
func newModel(t *rapid.T, e *env, counts map[string]int) *model {
	m := &model{platform: newPlatform(t, e), counts: counts}

	for range 2 {
		m.instances = append(m.instances, &modelInstance{id: m.newID(), phase: absent, outcomes: map[string]string{}, bindings: map[string]string{}})
	}

	m.eachPlan(func(offering offering, plan plan) {
		if plan.ID == harness.PlanAWS {
			properties, _ := plan.Schemas["service_instance"]["update"].Parameters["properties"].(map[string]any)
			if len(properties) == 0 || !offering.bindable(plan) {
				m.Fatalf("the plan has %d parameters in updates; bindable: %t", len(properties), offering.bindable(plan))
			}
		}
	})

	m.block()

	return m
}

// block holds all calls that start operations in the Provisioner, so that no operation of the broker ends.
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

// want calls [platform.want] and counts the response.
func (m *model) want(reason string, got harness.Reply, status int, code ...string) harness.Reply {
	m.Helper()
	m.counts[reason]++

	return m.platform.want(reason, got, status, code...)
}

// exercised returns the checks that must occur in every run: each action must have an effect, and most actions must be repeated.
func exercised() []string {
	return []string{
		"a new order", "a different order with the same ID", "the same order", "the same order for a ready instance",
		"a deletion", "a deletion of an unknown instance", "the same deletion", "a deletion right after it",
		"an update", "an update without effect", "the same update", "a bind", "the same bind", "an unbind",
		"a fetch of an instance in phase absent", "a fetch of an instance in phase creating", "a fetch of an instance in phase ready",
		"a fetch of an instance in phase updating", "a fetch during the deletion", "a fetch of a binding", "a poll of an unknown instance",
	}
}

// roundLimit is the maximum number of rounds that the test adds until all checks in exercised have occurred. The first rounds almost
// always suffice.
const roundLimit = 20

// TestModel sends random requests to a broker on each database and compares every response with a model. It fails unless each
// kind of request has occurred. It adds rounds until SOAK_DURATION has passed.
func TestModel(t *testing.T) {
	harness.EachDatabase(t, func(t *testing.T, database harness.Database) {
		e, counts := startOn(t, database), map[string]int{}
		deadline := time.Now().Add(harness.SoakDuration(t) / 2) // each database gets half of the time

		for round := 1; ; round++ {
			rapid.Check(t, func(r *rapid.T) {
				m := newModel(r, e, counts)
				defer m.unblock()

				r.Repeat(m.actions())
				m.endOperations()
				m.compare(r)
			})

			unseen := slices.DeleteFunc(exercised(), func(reason string) bool { return counts[reason] > 0 })

			switch {
			case t.Failed():
				return
			case len(unseen) > 0 && round >= roundLimit:
				t.Fatalf("no response to %q in %d rounds: %v", unseen, round, counts)
			case len(unseen) == 0 && !time.Now().Before(deadline):
				t.Logf("checked responses after %d rounds: %v", round, counts)

				return
			}
		}
	})
}
