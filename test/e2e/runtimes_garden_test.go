//go:build garden

package e2e

import (
	"testing"

	"github.com/environment-broker/environment-broker/provisioner/gardener"
)

// TestRuntimeChangesOnLocalGarden validates the Shoots of all providers and their changes with Gardener's API server.
func TestRuntimeChangesOnLocalGarden(t *testing.T) {
	t.Parallel()

	api, err := gardener.Connect(localGarden(t, "--cluster-creation=1s"))
	if err != nil {
		t.Fatal(err)
	}

	testRuntimeChanges(t, api)
}
