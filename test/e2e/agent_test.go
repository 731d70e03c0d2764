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
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/environment-broker/environment-broker/internal/logging"
	simulator "github.com/environment-broker/environment-broker/internal/sandbox/fakeagent"
	"github.com/environment-broker/environment-broker/internal/sandbox/fakedirector"
	"github.com/environment-broker/environment-broker/provisioner/clusteraccess"
	"github.com/environment-broker/environment-broker/provisioner/gardener"
	provisioner "github.com/environment-broker/environment-broker/provisioner/service"
	"github.com/environment-broker/environment-broker/test/harness"
)

// connected is a Provisioner with a Director and a connector for agents.
type connected struct {
	clusters

	connector *connector
	inside    clusteraccess.Access
}

func newConnected(t *testing.T, api client.WithWatch) connected {
	t.Helper()

	simulated, settings := newDirector(t)
	c := connected{
		connector: &connector{Director: simulated},
		inside:    clusteraccess.New(gardener.New(api, "garden-local")),
	}
	c.clusters = newClusters(t, api, func(provisionerSettings *provisioner.Config) {
		provisionerSettings.Director = settings
		provisionerSettings.Kyma.ReleasesPath = filepath.Join("..", "..", "resources", "releases")
	})

	return c
}

// runAgent runs an agent for the cluster.
func (c connected) runAgent(shootName string) dynamic.Interface {
	c.Helper()

	config, disconnect, err := c.inside.Connect(c.Context(), shootName)
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

func (c connected) reconnect(runtimeID string) (operationID string) {
	c.Helper()

	if refused := c.ask(reconnectAgent, map[string]any{"id": runtimeID}, &operationID); refused != "" {
		c.Fatal(refused)
	}

	return operationID
}

// until waits for the status and the errors of the agent's connection.
func (c connected) until(runtimeID, status string, errors ...string) {
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

		if refused := c.ask(`query ($id: String!) { result: runtimeStatus(id: $id) { runtimeConnectionStatus { status errors { message } } } }`,
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

// testAgent follows one runtime with Kyma and its agent: the agent connects, Kyma is upgraded, the agent reconnects, is rejected, and is
// removed with the runtime.
func testAgent(t *testing.T, api client.WithWatch) {
	t.Helper()

	c := newConnected(t, api)
	c.hasNoAgent()

	order := clusterOf("gcp")
	order["name"] = "c-kyma"

	made := c.order(provisionRuntime, map[string]any{"config": map[string]any{
		"runtimeInput": map[string]any{"name": "c-kyma"}, "clusterConfig": map[string]any{"gardenerConfig": order}, "kymaConfig": kymaOf("1.0.0"),
	}})
	c.waitForMessage(made.ID, "the runtime agent has not started to connect")
	c.until(made.RuntimeID, "Pending")

	cluster := c.runAgent("c-kyma")
	c.wantSucceeded(made.ID)

	first := c.connection(made.RuntimeID, cluster)

	upgrade := c.order(upgradeRuntime, map[string]any{"id": made.RuntimeID, "config": map[string]any{"kymaConfig": kymaOf("1.1.0")}})
	c.wantSucceeded(upgrade.ID)

	if upgraded := c.connection(made.RuntimeID, cluster); upgraded != first {
		t.Errorf("an upgrade of Kyma made the agent reconnect: %s, %s", first, upgraded)
	}

	c.wantSucceeded(c.reconnect(made.RuntimeID))

	if second := c.connection(made.RuntimeID, cluster); second == first {
		t.Error("the agent did not reconnect after the request")
	}

	known := c.registered(made.RuntimeID)
	if len(spent(known)) != 2 || known.Condition != "CONNECTED" {
		t.Errorf("the runtime in Director is %s with tokens %+v, want two used tokens", known.Condition, known.OneTimeTokens)
	}

	c.connector.refuse(errors.New("the account is locked"))

	id := c.reconnect(made.RuntimeID)
	c.until(made.RuntimeID, "Disconnected", "the account is locked")

	c.waitForMessage(id, "the runtime agent could not connect (ConnectionFailed): the account is locked; it has got another token")

	c.remove(made.RuntimeID)
	c.until(made.RuntimeID, "Pending")
}

// hasNoAgent provisions a runtime without Kyma, which has no agent.
func (c connected) hasNoAgent() {
	c.Helper()

	made := c.order(provisionRuntime, map[string]any{"config": map[string]any{
		"runtimeInput": map[string]any{"name": "c-gcp"}, "clusterConfig": map[string]any{"gardenerConfig": clusterOf("gcp")},
	}})
	c.wantSucceeded(made.ID)
	c.until(made.RuntimeID, "Pending")

	var refused string
	if got := c.ask(reconnectAgent, map[string]any{"id": made.RuntimeID}, &refused); !strings.Contains(got, "has no runtime agent") {
		c.Fatalf("reconnecting without an agent: %q", got)
	}

	c.remove(made.RuntimeID)
}

// connection waits until the agent has connected, and returns the ID of its connection.
func (c connected) connection(runtimeID string, cluster dynamic.Interface) string {
	c.Helper()
	c.until(runtimeID, "Connected")

	connections := schema.GroupVersionResource{Group: "compass.kyma-project.io", Version: "v1alpha1", Resource: "compassconnections"}

	found, err := cluster.Resource(connections).Get(c.Context(), "compass-connection", metav1.GetOptions{})
	if err != nil {
		c.Fatal(err)
	}

	return string(found.GetUID())
}

// registered returns the runtime in Director.
func (c connected) registered(runtimeID string) fakedirector.Runtime {
	c.Helper()

	all := c.connector.Runtimes()

	found := slices.IndexFunc(all, func(each fakedirector.Runtime) bool { return each.ID == runtimeID })
	if found < 0 {
		c.Fatalf("runtime %s is not in Director", runtimeID)
	}

	return all[found]
}

func (c connected) remove(runtimeID string) {
	c.Helper()

	var removal string
	if got := c.ask(`mutation ($id: String!) { result: deprovisionRuntime(id: $id) }`, map[string]any{"id": runtimeID}, &removal); got != "" {
		c.Fatal(got)
	}

	c.wantSucceeded(removal)
}

func TestAgentConnects(t *testing.T) {
	t.Parallel()

	memory := harness.StartGarden(t, 200*time.Millisecond)
	testAgent(t, memory.Client())
}
