//go:build garden

package e2e

import (
	"testing"

	"github.com/environment-broker/environment-broker/provisioner/gardener"
)

// TestRuntimesAreMadeAndChangedOnTheRealGarden has Gardener's API server judge the Shoots of all providers, and their changes.
func TestRuntimesAreMadeAndChangedOnTheRealGarden(t *testing.T) {
	t.Parallel()

	api, err := gardener.Connect(realGarden(t, "--cluster-creation=1s"))
	if err != nil {
		t.Fatal(err)
	}

	changeStory(t, api)
}
