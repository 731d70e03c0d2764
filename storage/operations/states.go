package operations

import (
	"slices"
	"strings"

	"github.com/environment-broker/environment-broker/process"
)

// InStates is the condition that selects operations by their states. These are written out and are no parameters, in groups that go
// together in an index: so the database sees which of its indexes has them.
func InStates(states ...process.State) string {
	groups := [][]process.State{
		{process.Pending}, {process.InProgress, process.Canceling}, {process.Failed, process.Canceled}, {process.Succeeded},
	}
	conditions := []string{}

	for _, group := range groups {
		words := []string{}

		for _, state := range group {
			if slices.Contains(states, state) {
				words = append(words, "'"+string(state)+"'")
			}
		}

		if len(words) > 0 {
			conditions = append(conditions, "operations.state IN ("+strings.Join(words, ", ")+")")
		}
	}

	if len(conditions) == 0 {
		return "FALSE" // nothing is in a state that there is not
	}

	return "(" + strings.Join(conditions, " OR ") + ")"
}

// Held is the condition under which a step writes beside its operation: that is still under the lease with which the step was begun. Its
// parameters are the operation's id, and the fence and the owner of the lease.
const Held = `EXISTS (SELECT 1 FROM operations WHERE operations.id = ? AND operations.fence = ? AND operations.lease_owner = ?)`
