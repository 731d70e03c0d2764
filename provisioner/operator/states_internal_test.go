package operator

import (
	"testing"

	"github.com/environment-broker/environment-broker/process"
	"github.com/environment-broker/environment-broker/provisioner/operation"
)

// TestEveryKindHasAState checks that a runtime has a state, whatever the kind and the state of its newest operation.
func TestEveryKindHasAState(t *testing.T) {
	for _, kind := range operation.Kinds() {
		for _, state := range []process.State{
			process.Pending, process.InProgress, process.Canceling, process.Succeeded, process.Failed, process.Canceled,
		} {
			if stateRules().Of(process.Record{Kind: kind, State: state}) == "" {
				t.Errorf("a runtime whose newest operation is %s and %s has no state: add the kind to stateRules", kind, state)
			}
		}
	}
}
