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

	agentStory(t, api)
}

// TestSandboxHasAgentsOnTheRealGarden has the sandbox start the real garden, as `make run-garden` does.
func TestSandboxHasAgentsOnTheRealGarden(t *testing.T) {
	t.Parallel()

	config := freshSandbox(t)

	inSandbox(t, config, gardenProgram(t), func(c connected) { c.reconnects(c.connects()) })
	forgotten(t, config.Dir)
}
