package e2e

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/environment-broker/environment-broker/internal/config"
	"github.com/environment-broker/environment-broker/internal/garden"
	"github.com/environment-broker/environment-broker/internal/logging"
	"github.com/environment-broker/environment-broker/internal/secret"
	simulator "github.com/environment-broker/environment-broker/internal/simulator/agent"
	"github.com/environment-broker/environment-broker/internal/simulator/director"
	"github.com/environment-broker/environment-broker/provisioner/agent"
	"github.com/environment-broker/environment-broker/provisioner/clusteraccess"
	"github.com/environment-broker/environment-broker/provisioner/gardener"
	"github.com/environment-broker/environment-broker/provisioner/graph/model"
	"github.com/environment-broker/environment-broker/provisioner/operation"
	provisioner "github.com/environment-broker/environment-broker/provisioner/service"
	"github.com/environment-broker/environment-broker/storage"
	stored "github.com/environment-broker/environment-broker/storage/runtimes"
)

// connected is a Provisioner with a Director, and with what its agents connect to.
type connected struct {
	clusters

	director  *director.Director
	connector *connector
	rows      *stored.Store
	inside    clusteraccess.Access
}

func newConnected(t *testing.T, api client.WithWatch) connected {
	t.Helper()

	simulated, err := director.New(director.Options{ConnectorURL: connectorURL})
	if err != nil {
		t.Fatal(err)
	}

	server := httptest.NewServer(simulated)
	t.Cleanup(server.Close)

	credentials := filepath.Join(t.TempDir(), "director.yaml")
	text := fmt.Sprintf("data: {client_id: %s, client_secret: %s, tokens_endpoint: %q}",
		director.DefaultClientID, director.DefaultClientSecret, server.URL+director.TokenPath)

	if err := os.WriteFile(credentials, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}

	c := connected{
		director: simulated, connector: &connector{director: simulated, spent: map[string]bool{}},
		inside: clusteraccess.New(gardener.New(api, "garden-local")),
	}
	c.clusters = newClusters(t, api, func(settings *provisioner.Config) {
		settings.Director = provisioner.Director{Enabled: true, URL: server.URL + director.GraphQLPath, OAuthPath: credentials, Calls: 16}
		c.rows = rowsOf(t, settings.Database)
	})

	return c
}

// rowsOf are the rows of runtimes in a Provisioner's database.
func rowsOf(t *testing.T, settings config.Database) *stored.Store {
	t.Helper()

	address, err := settings.Storage()
	if err != nil {
		t.Fatal(err)
	}

	db, err := storage.Open(t.Context(), address)
	if err != nil {
		t.Fatal(err)
	}

	t.Cleanup(func() {
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	})

	keys, err := secret.ParseKeyring(settings.SecretKeys)
	if err != nil {
		t.Fatal(err)
	}

	rows, err := stored.Open(t.Context(), db, keys)
	if err != nil {
		t.Fatal(err)
	}

	return rows
}

// equip has the runtime be one that was ordered with an agent.
func (c connected) equip(runtimeID, shootName string) {
	c.Helper()

	runtime, err := c.rows.OfShoot(c.Context(), c.rows.Reader(), shootName)
	if err != nil {
		c.Fatal(err)
	}

	order, err := operation.OrderOf(runtime)
	if err != nil {
		c.Fatal(err)
	}

	order.KymaConfig = &model.KymaConfigInput{Components: []*model.ComponentConfigurationInput{{Component: agent.Component}}}

	configuration, err := json.Marshal(order)
	if err != nil {
		c.Fatal(err)
	}

	if err := c.rows.Configured(c.Context(), runtimeID, configuration, 1); err != nil {
		c.Fatal(err)
	}
}

// employ has an agent work in the cluster.
func (c connected) employ(shootName string) dynamic.Interface {
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

	// Simulated clusters know CompassConnections, and nothing of definitions.
	definitions := cluster.Resource(schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"})
	if _, err := definitions.Create(c.Context(), simulator.Definition(), metav1.CreateOptions{}); err != nil && !apierrors.IsNotFound(err) {
		c.Fatal(err)
	}

	run(c.T, simulator.New(simulator.Options{
		Cluster: cluster, Namespace: agent.DefaultNamespace, Connector: c.connector, Every: 100 * time.Millisecond, Log: logging.Discard(),
	}).Run)

	return cluster
}

func (c connected) reconnect(runtimeID string) (operationID string) {
	c.Helper()

	if refused := c.ask(`mutation ($id: String!) { result: reconnectRuntimeAgent(id: $id) }`, map[string]any{"id": runtimeID}, &operationID); refused != "" {
		c.Fatal(refused)
	}

	return operationID
}

// until waits for how the agent is told to be connected.
func (c connected) until(runtimeID, status string, errors ...string) {
	c.Helper()

	want := status + " " + strings.Join(errors, ", ")
	ticker := time.NewTicker(200 * time.Millisecond)
	defer ticker.Stop()

	for deadline := time.Now().Add(time.Minute); ; <-ticker.C {
		var told struct {
			RuntimeConnectionStatus struct {
				Status string
				Errors []struct{ Message string }
			}
		}

		if refused := c.ask(`query ($id: String!) { result: runtimeStatus(id: $id) { runtimeConnectionStatus { status errors { message } } } }`,
			map[string]any{"id": runtimeID}, &told); refused != "" {
			c.Fatal(refused)
		}

		var problems []string
		for _, each := range told.RuntimeConnectionStatus.Errors {
			problems = append(problems, each.Message)
		}

		got := told.RuntimeConnectionStatus.Status + " " + strings.Join(problems, ", ")
		if got == want {
			return
		}

		if time.Now().After(deadline) {
			c.Fatalf("the agent is told as %q, want %q", got, want)
		}
	}
}

// says waits until the operation's message holds the text.
func (c connected) says(operationID, text string) {
	c.Helper()

	ticker := time.NewTicker(200 * time.Millisecond)
	defer ticker.Stop()

	for deadline := time.Now().Add(time.Minute); ; <-ticker.C {
		got := c.order(`query ($id: String!) { result: runtimeOperationStatus(id: $id) { message } }`, map[string]any{"id": operationID})

		switch {
		case strings.Contains(got.Message, text):
			return
		case time.Now().After(deadline):
			c.Fatalf("the operation says %q, want %q", got.Message, text)
		}
	}
}

// agentStory follows the agent of a runtime: there is none, it connects, connects anew, is refused, and goes with its runtime.
func agentStory(t *testing.T, api client.WithWatch) {
	t.Helper()

	c := newConnected(t, api)
	order := clusterOf("gcp")

	made := c.order(provisionRuntime, map[string]any{"config": map[string]any{
		"runtimeInput": map[string]any{"name": "c-gcp"}, "clusterConfig": map[string]any{"gardenerConfig": order},
	}})
	c.succeeded(made.ID)
	c.until(made.RuntimeID, "Pending")

	var refused string
	if got := c.ask(`mutation ($id: String!) { result: reconnectRuntimeAgent(id: $id) }`, map[string]any{"id": made.RuntimeID}, &refused); !strings.Contains(got, "has no runtime agent") {
		t.Fatalf("without an agent the answer is %q", got)
	}

	c.equip(made.RuntimeID, "c-gcp")
	cluster := c.employ("c-gcp")
	c.until(made.RuntimeID, "Pending")

	var former string

	for _, reason := range []string{"the agent connects for the first time", "it connects anew, with another token"} {
		c.succeeded(c.reconnect(made.RuntimeID))
		c.until(made.RuntimeID, "Connected")

		connection, err := cluster.Resource(schema.GroupVersionResource{Group: "compass.kyma-project.io", Version: "v1alpha1", Resource: "compassconnections"}).
			Get(t.Context(), "compass-connection", metav1.GetOptions{})
		if err != nil || string(connection.GetUID()) == former {
			t.Fatalf("%s: the connection is %v, %v", reason, connection, err)
		}

		former = string(connection.GetUID())
	}

	known := c.director.Runtimes()[0]
	if spent := c.connector.count(); len(known.OneTimeTokens) != 2 || spent != 2 || known.Condition != "CONNECTED" {
		t.Errorf("Director has given %d tokens, of which %d are spent, and knows the runtime as %s", len(known.OneTimeTokens), spent, known.Condition)
	}

	c.connector.refuse(errors.New("the account is locked"))

	id := c.reconnect(made.RuntimeID)
	c.until(made.RuntimeID, "Disconnected", "the account is locked")

	c.says(id, "the runtime agent could not connect (ConnectionFailed): the account is locked; it has got another token")

	var removal string
	if got := c.ask(`mutation ($id: String!) { result: deprovisionRuntime(id: $id) }`, map[string]any{"id": made.RuntimeID}, &removal); got != "" {
		t.Fatal(got)
	}

	c.succeeded(removal)
	c.until(made.RuntimeID, "Pending")
}

func TestAgentConnects(t *testing.T) {
	memory, err := garden.Open(t.Context(), garden.Options{
		Dir: filepath.Join(t.TempDir(), "garden"), ClusterCreation: 200 * time.Millisecond, Log: logging.Discard(),
	})
	if err != nil {
		t.Fatal(err)
	}

	run(t, memory.Run)
	agentStory(t, memory.Client())
}
