//go:build garden

package e2e

import (
	"testing"

	"github.com/environment-broker/environment-broker/provisioner/gardener"
)

// TestAgentConnectsOnTheRealGarden has a real API server be the runtime.
func TestAgentConnectsOnTheRealGarden(t *testing.T) {
	t.Parallel()

	api, err := gardener.Connect(realGarden(t, "--cluster-creation=1s"))
	if err != nil {
		t.Fatal(err)
	}

	agentStory(t, api, clusters.finishNamespaces)
}
