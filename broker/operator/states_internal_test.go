package operator

import (
	"slices"
	"testing"

	"github.com/environment-broker/environment-broker/internal/environment/fleet"
)

// TestStatesOfTargets checks that targets of orchestrations can select each state of a runtime.
func TestStatesOfTargets(t *testing.T) {
	rules := stateRules()
	for _, rule := range rules {
		if !slices.Contains(fleet.RuntimeStates(), string(rule.State)) {
			t.Errorf("targets cannot select the state %s", rule.State)
		}
	}

	if len(rules) != len(fleet.RuntimeStates()) {
		t.Errorf("%d states, of which targets can select %d", len(rules), len(fleet.RuntimeStates()))
	}
}
