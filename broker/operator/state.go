package operator

import (
	"slices"

	"github.com/environment-broker/environment-broker/internal/environment"
	"github.com/environment-broker/environment-broker/internal/operatorapi"
	"github.com/environment-broker/environment-broker/process"
)

// meaning says of which newest operations a state of runtimes speaks. No kinds are all kinds.
type meaning struct {
	state  operatorapi.RuntimeState
	kinds  []string
	states []process.State
}

// meanings define the states of runtimes, for showing them and for filtering by them.
func meanings() []meaning {
	underWay := []process.State{process.Pending, process.InProgress, process.Canceling}

	return []meaning{
		{operatorapi.RuntimeFailed, nil, []process.State{process.Failed, process.Canceled}},
		{operatorapi.RuntimeProvisioning, []string{environment.KindProvision}, underWay},
		{
			operatorapi.RuntimeSucceeded,
			[]string{environment.KindProvision, environment.KindUpdate, environment.KindResume},
			[]process.State{process.Succeeded},
		},
		{operatorapi.RuntimeUpdating, []string{environment.KindUpdate}, underWay},
		{operatorapi.RuntimeSuspending, []string{environment.KindSuspend}, underWay},
		{operatorapi.RuntimeSuspended, []string{environment.KindSuspend}, []process.State{process.Succeeded}},
		{operatorapi.RuntimeResuming, []string{environment.KindResume}, underWay},
		{operatorapi.RuntimeDeprovisioning, []string{environment.KindDeprovision}, append(underWay, process.Succeeded)},
	}
}

// stateOf sums up a runtime by the newest operation of its instance.
func stateOf(newest process.Record) operatorapi.RuntimeState {
	for _, meaning := range meanings() {
		if (meaning.kinds == nil || slices.Contains(meaning.kinds, newest.Kind)) && slices.Contains(meaning.states, newest.State) {
			return meaning.state
		}
	}

	return ""
}
