//go:build garden

package e2e

import (
	"testing"

	"github.com/environment-broker/environment-broker/provisioner/gardener"
)

// TestAgentConnectsOnLocalGarden uses a runtime with a real API server.
func TestAgentConnectsOnLocalGarden(t *testing.T) {
	t.Parallel()

	api, err := gardener.Connect(localGarden(t, "--cluster-creation=1s"))
	if err != nil {
		t.Fatal(err)
	}

	testAgent(t, api)
}

// TestSandboxAgentsOnLocalGarden runs the sandbox on the local garden, as `make run-garden` does.
func TestSandboxAgentsOnLocalGarden(t *testing.T) {
	t.Parallel()

	config := freshSandbox(t)

	inSandbox(t, config, gardenProgram(t), func(c connected) { c.reconnects(c.connects()) })
	forgotten(t, config.Dir)
}
