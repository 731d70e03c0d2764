//go:build garden

package e2e

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/environment-broker/environment-broker/internal/sandbox"
	"github.com/environment-broker/environment-broker/test/harness"
)

// TestInstanceOnLocalGarden checks that the administrator's kubeconfig of an instance gives access to its runtime, and that the
// deletion leaves no Shoot.
func TestInstanceOnLocalGarden(t *testing.T) {
	t.Parallel()

	p := startPrograms(t, sharedGarden(t, "own"))

	p.Create("real", harness.PlanTrial)
	p.WantSucceeded("real")

	runtime := harness.RuntimeClient(t, p.kubeconfig("real"))
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "first-steps"}}
	if _, err := runtime.CoreV1().Namespaces().Create(t.Context(), namespace, metav1.CreateOptions{}); err != nil {
		t.Errorf("the administrator cannot create a namespace: %v", err)
	}

	p.Delete("real", harness.PlanTrial)
	p.WantGone("real")

	if shoots := p.shoots(); len(shoots) != 0 {
		t.Errorf("%d Shoots remain", len(shoots))
	}
}

// TestAgentConnectsOnLocalGarden runs testAgent with real API servers.
func TestAgentConnectsOnLocalGarden(t *testing.T) {
	t.Parallel()

	testAgent(t, sharedGarden(t, "own").project)
}

// TestSandboxAgentsOnLocalGarden checks that the sandbox runs agents in the clusters of the local garden, as with `make run-garden`.
func TestSandboxAgentsOnLocalGarden(t *testing.T) {
	t.Parallel()

	config := sandboxConfig(t)

	withSandbox(t, config, sandbox.Programs{Garden: gardenProgram(t)}, func(c agentEnv) { c.reconnectAndRemove(c.provisionConnected()) })
	wantNoDirectorRuntimes(t, config.Dir)
}
