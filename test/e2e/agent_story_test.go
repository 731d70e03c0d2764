package e2e

import (
	"encoding/json"
	"errors"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/environment-broker/environment-broker/internal/garden"
	"github.com/environment-broker/environment-broker/internal/logging"
	"github.com/environment-broker/environment-broker/internal/secret"
	simulator "github.com/environment-broker/environment-broker/internal/simulator/agent"
	"github.com/environment-broker/environment-broker/process"
	"github.com/environment-broker/environment-broker/provisioner/agent"
	"github.com/environment-broker/environment-broker/provisioner/clusteraccess"
	"github.com/environment-broker/environment-broker/provisioner/gardener"
	"github.com/environment-broker/environment-broker/provisioner/graph"
	"github.com/environment-broker/environment-broker/provisioner/graph/model"
	"github.com/environment-broker/environment-broker/provisioner/operation"
	"github.com/environment-broker/environment-broker/provisioner/runtimes"
	provisioner "github.com/environment-broker/environment-broker/provisioner/service"
	"github.com/environment-broker/environment-broker/provisioner/validation"
	"github.com/environment-broker/environment-broker/storage"
	"github.com/environment-broker/environment-broker/storage/operations"
	stored "github.com/environment-broker/environment-broker/storage/runtimes"
)

// connected is a Provisioner whose agents get tokens from the test, which is Director and Connector to them.
type connected struct {
	clusters

	rows   *stored.Store
	inside clusteraccess.Access
	tokens *tokens
}

func newConnected(t *testing.T, api client.WithWatch) connected {
	t.Helper()

	settings := onSQLite(t, "provisioner")

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

	ops, err := operations.Open(t.Context(), db, keys)
	if err != nil {
		t.Fatal(err)
	}

	rows, err := stored.Open(t.Context(), db, keys)
	if err != nil {
		t.Fatal(err)
	}

	config := provisioner.DefaultConfig()
	config.Gardener.Project, config.Gardener.PollInterval = garden.DefaultProject, 200*time.Millisecond

	shoots := gardener.New(api, "garden-local")
	c := connected{rows: rows, inside: clusteraccess.New(shoots), tokens: newTokens()}

	engine, err := process.NewEngine(ops, process.DefaultConfig(), clock.RealClock{}, logging.Discard(),
		provisioner.Processes(config, provisioner.Parts{
			Shoots: shoots, Clusters: c.inside, Agents: c.inside, Tokens: c.tokens, Runtimes: rows,
		})...)
	if err != nil {
		t.Fatal(err)
	}

	run(t, engine.Run)

	server := httptest.NewServer(graph.NewHandler(graph.Options{
		Runtimes: runtimes.New(runtimes.Options{
			DB: db, Operations: ops, Runtimes: rows, Kubeconfigs: shoots, Shoots: shoots, Clock: clock.RealClock{},
			KubeconfigValidity: time.Hour, Wake: engine.Wake, Check: func(stored.Runtime) error { return nil },
			Agents: agent.NewStatuses(c.inside, shoots, clock.RealClock{}),
		}),
		Rules: validation.Rules{Project: garden.DefaultProject}, Log: logging.Discard(), Endpoint: "/graphql",
	}))
	t.Cleanup(server.Close)

	c.clusters = clusters{T: t, url: server.URL + "/graphql", garden: api}

	return c
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
		Cluster: cluster, Namespace: agent.DefaultNamespace, Connector: c.tokens, Every: 100 * time.Millisecond, Log: logging.Discard(),
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

	if issued, spent := c.tokens.count(); issued != 2 || spent != 2 {
		t.Errorf("%d tokens were made and %d spent, want one for each connection", issued, spent)
	}

	c.tokens.refuse(errors.New("the account is locked"))

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
