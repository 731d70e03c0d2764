package operatorserver

import (
	"slices"

	"github.com/environment-broker/environment-broker/internal/operatorapi"
	"github.com/environment-broker/environment-broker/process"
)

// StateRule maps the newest operation of an instance to a state of its runtime. A rule without kinds matches all
// kinds.
type StateRule struct {
	State  operatorapi.RuntimeState
	Kinds  []string
	States []process.State
}

// StateRules are the rules of a service in order; the first match wins. The same rules determine the displayed state and the
// filter by state, so the two always agree.
type StateRules []StateRule

// Of returns the state of a runtime. newest is the newest operation of its instance. If no rule matches, Of returns an empty state.
func (s StateRules) Of(newest process.Record) operatorapi.RuntimeState {
	for _, rule := range s {
		if (rule.Kinds == nil || slices.Contains(rule.Kinds, newest.Kind)) && slices.Contains(rule.States, newest.State) {
			return rule.State
		}
	}

	return ""
}

// Find returns the rule for the given state. If there is none, the error names the valid states.
func (s StateRules) Find(state operatorapi.RuntimeState) (StateRule, error) {
	known := make([]operatorapi.RuntimeState, 0, len(s))

	for _, rule := range s {
		if rule.State == state {
			return rule, nil
		}

		known = append(known, rule.State)
	}

	return StateRule{}, Unknown("state", state, known)
}
