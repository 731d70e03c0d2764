package processes

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/environment-broker/environment-broker/provisioner/operation"
)

// TestKinds checks that operation.Kinds lists the kinds of all processes. The operator API does not know other kinds.
func TestKinds(t *testing.T) {
	listed, registered := operation.Kinds(), []string{}
	for _, each := range newUpgrade(nil).options().All() {
		registered = append(registered, each.Kind)
	}

	slices.Sort(listed)
	slices.Sort(registered)

	if diff := cmp.Diff(registered, listed); diff != "" {
		t.Errorf("operation.Kinds differs from the processes of Options.All: -processes +Kinds\n%s", diff)
	}
}
