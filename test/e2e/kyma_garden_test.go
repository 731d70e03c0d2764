//go:build garden

package e2e

import (
	"testing"

	"github.com/environment-broker/environment-broker/provisioner/gardener"
)

// TestRuntimesWithKymaOnTheRealGarden installs on runtimes with an API server of their own.
func TestRuntimesWithKymaOnTheRealGarden(t *testing.T) {
	t.Parallel()

	api, err := gardener.Connect(realGarden(t, "--cluster-creation=1s"))
	if err != nil {
		t.Fatal(err)
	}

	kymaStory(t, api)
}
