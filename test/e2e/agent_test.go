package e2e

import (
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	"github.com/environment-broker/environment-broker/internal/logging"
	simulator "github.com/environment-broker/environment-broker/internal/sandbox/fakeagent"
	"github.com/environment-broker/environment-broker/internal/sandbox/fakedirector"
	"github.com/environment-broker/environment-broker/provisioner/clusteraccess"
	"github.com/environment-broker/environment-broker/provisioner/gardener"
	provisioner "github.com/environment-broker/environment-broker/provisioner/service"
	"github.com/environment-broker/environment-broker/test/harness"
)

// agentEnv is a Provisioner with a fake Director, whose connector accepts runtime agents.
type agentEnv struct {
	clusters

	connector *connector
	access    clusteraccess.Access
}

func newAgentEnv(t *testing.T, garden project) agentEnv {
	t.Helper()

	simulated, settings := newDirector(t)
	c := agentEnv{
		connector: &connector{Director: simulated},
		access:    clusteraccess.New(gardener.New(garden, garden.Namespace())),
	}
	c.clusters = newClusters(t, garden, func(provisionerSettings *provisioner.Config) {
		provisionerSettings.Director = settings
		provisionerSettings.Kyma.ReleasesPath = filepath.Join("..", "..", "resources", "releases")
	})

	return c
}

// runAgent runs a fake runtime agent in a cluster until the test ends, and returns a client of the cluster.
func (c agentEnv) runAgent(shootName string) dynamic.Interface {
	c.Helper()

	config, disconnect, err := c.access.Connect(c.Context(), shootName)
	if err != nil {
		c.Fatal(err)
	}

	c.Cleanup(disconnect)

	cluster, err := dynamic.NewForConfig(config)
	if err != nil {
		c.Fatal(err)
	}

	harness.Run(c.T, simulator.New(simulator.Options{
		Cluster: cluster, Connector: c.connector, Every: 100 * time.Millisecond, Log: logging.Discard(),
	}).Run)

	return cluster
}

const reconnectAgent = `mutation ($id: String!) { result: reconnectRuntimeAgent(id: $id) }`

func (c agentEnv) reconnect(runtimeID string) (operationID string) {
	c.Helper()

	if refused := c.send(reconnectAgent, map[string]any{"id": runtimeID}, &operationID); refused != "" {
		c.Fatal(refused)
	}

	return operationID
}

// waitForConnection waits until runtimeStatus returns the given connection status and exactly the given errors.
func (c agentEnv) waitForConnection(runtimeID, status string, errors ...string) {
	c.Helper()

	want := status + " " + strings.Join(errors, ", ")

	var got string

	if !harness.Within(harness.Patience, func() bool {
		var decoded struct {
			RuntimeConnectionStatus struct {
				Status string
				Errors []struct{ Message string }
			}
		}

		if refused := c.send(`query ($id: String!) { result: runtimeStatus(id: $id) { runtimeConnectionStatus { status errors { message } } } }`,
			map[string]any{"id": runtimeID}, &decoded); refused != "" {
			c.Fatal(refused)
		}

		var problems []string
		for _, each := range decoded.RuntimeConnectionStatus.Errors {
			problems = append(problems, each.Message)
		}

		got = decoded.RuntimeConnectionStatus.Status + " " + strings.Join(problems, ", ")

		return got == want
	}) {
		c.Fatalf("the status of the agent is %q, want %q", got, want)
	}
}

// testAgent provisions a runtime with Kyma and checks the connection of its agent: after the provisioning, an upgrade of Kyma, a
// requested reconnection, a failure of the connection, and the removal of the runtime.
func testAgent(t *testing.T, garden project) {
	t.Helper()

	c := newAgentEnv(t, garden)
	c.checkRuntimeWithoutAgent()

	order := clusterOf("gcp")
	order["name"] = "c-kyma"

	created := c.mustSend(provisionRuntime, map[string]any{"config": map[string]any{
		"runtimeInput": map[string]any{"name": "c-kyma"}, "clusterConfig": map[string]any{"gardenerConfig": order}, "kymaConfig": kymaOf("1.0.0"),
	}})
	c.waitForMessage(created.ID, "the runtime agent has not started to connect")
	c.waitForConnection(created.RuntimeID, "Pending")

	cluster := c.runAgent("c-kyma")
	c.wantSucceeded(created.ID)

	first := c.connection(created.RuntimeID, cluster)

	upgrade := c.mustSend(upgradeRuntime, map[string]any{"id": created.RuntimeID, "config": map[string]any{"kymaConfig": kymaOf("1.1.0")}})
	c.wantSucceeded(upgrade.ID)

	if upgraded := c.connection(created.RuntimeID, cluster); upgraded != first {
		t.Errorf("the upgrade of Kyma made the agent reconnect: %s, %s", first, upgraded)
	}

	c.wantSucceeded(c.reconnect(created.RuntimeID))

	if second := c.connection(created.RuntimeID, cluster); second == first {
		t.Error("the agent did not reconnect when requested")
	}

	registered := c.directorRuntime(created.RuntimeID)
	if len(spentTokens(registered)) != 2 || registered.Condition != "CONNECTED" {
		t.Errorf("the runtime in Director is %s with tokens %+v, want two used tokens", registered.Condition, registered.OneTimeTokens)
	}

	c.connector.reject(errors.New("the account is locked"))

	id := c.reconnect(created.RuntimeID)
	c.waitForConnection(created.RuntimeID, "Disconnected", "the account is locked")

	c.waitForMessage(id, "the runtime agent could not connect (ConnectionFailed): the account is locked; it has received a new token")

	c.remove(created.RuntimeID)
	c.waitForConnection(created.RuntimeID, "Pending")
}

// checkRuntimeWithoutAgent provisions a runtime without Kyma. The Provisioner must reject a request to reconnect the runtime's
// agent.
func (c agentEnv) checkRuntimeWithoutAgent() {
	c.Helper()

	created := c.mustSend(provisionRuntime, map[string]any{"config": map[string]any{
		"runtimeInput": map[string]any{"name": "c-gcp"}, "clusterConfig": map[string]any{"gardenerConfig": clusterOf("gcp")},
	}})
	c.wantSucceeded(created.ID)
	c.waitForConnection(created.RuntimeID, "Pending")

	var refused string
	if got := c.send(reconnectAgent, map[string]any{"id": created.RuntimeID}, &refused); !strings.Contains(got, "has no runtime agent") {
		c.Fatalf("reconnecting without an agent: %q", got)
	}

	c.remove(created.RuntimeID)
}

// connection waits until the agent has connected and returns the UID of the connection object in the cluster.
func (c agentEnv) connection(runtimeID string, cluster dynamic.Interface) string {
	c.Helper()
	c.waitForConnection(runtimeID, "Connected")

	connections := schema.GroupVersionResource{Group: "compass.kyma-project.io", Version: "v1alpha1", Resource: "compassconnections"}

	found, err := cluster.Resource(connections).Get(c.Context(), "compass-connection", metav1.GetOptions{})
	if err != nil {
		c.Fatal(err)
	}

	return string(found.GetUID())
}

func (c agentEnv) directorRuntime(runtimeID string) fakedirector.Runtime {
	c.Helper()

	all := c.connector.Runtimes()

	found := slices.IndexFunc(all, func(each fakedirector.Runtime) bool { return each.ID == runtimeID })
	if found < 0 {
		c.Fatalf("runtime %s is not in Director", runtimeID)
	}

	return all[found]
}

func (c agentEnv) remove(runtimeID string) {
	c.Helper()

	var removal string
	if got := c.send(`mutation ($id: String!) { result: deprovisionRuntime(id: $id) }`, map[string]any{"id": runtimeID}, &removal); got != "" {
		c.Fatal(got)
	}

	c.wantSucceeded(removal)
}

func TestAgentConnects(t *testing.T) {
	t.Parallel()

	testAgent(t, projectOf(harness.StartGarden(t, 200*time.Millisecond)))
}
