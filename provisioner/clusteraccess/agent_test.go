package clusteraccess_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"unicode"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	"github.com/environment-broker/environment-broker/internal/failure"
	"github.com/environment-broker/environment-broker/internal/sandbox/fakegarden/certificate"
	"github.com/environment-broker/environment-broker/internal/secret"
	"github.com/environment-broker/environment-broker/provisioner/agent"
	"github.com/environment-broker/environment-broker/provisioner/clusteraccess"
)

// place returns the place of an agent in a namespace that does not exist yet.
func place() agent.Place { return agent.Place{ShootName: "c-first", Namespace: "compass-system"} }

func configuration(operationID string) agent.Configuration {
	return agent.Configuration{
		Token:     agent.Token{Token: secret.String("hush-" + operationID), ConnectorURL: "https://connector.example.com"},
		RuntimeID: "runtime-1", Tenant: "tenant", WrittenBy: operationID,
	}
}

func (c *cluster) inside(t *testing.T) dynamic.Interface {
	t.Helper()

	config, disconnect, err := clusteraccess.New(c).Connect(t.Context(), "c-first")
	if err != nil {
		t.Fatal(err)
	}

	t.Cleanup(disconnect)

	client, err := dynamic.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}

	return client
}

func (c *cluster) connections(t *testing.T) dynamic.ResourceInterface {
	t.Helper()

	return c.inside(t).Resource(schema.GroupVersionResource{
		Group: "compass.kyma-project.io", Version: "v1alpha1", Resource: "compassconnections",
	})
}

// connect creates a CompassConnection, as an agent would, and returns its ID.
func (c *cluster) connect(t *testing.T, status map[string]any) string {
	t.Helper()

	made, err := c.connections(t).Create(t.Context(), &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "compass.kyma-project.io/v1alpha1", "kind": "CompassConnection",
		"metadata": map[string]any{"name": "compass-connection"}, "status": status,
	}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}

	return string(made.GetUID())
}

func (c *cluster) configured(t *testing.T) map[string]string {
	t.Helper()

	found, err := c.inside(t).Resource(corev1.SchemeGroupVersion.WithResource("secrets")).Namespace(place().Namespace).
		Get(t.Context(), "compass-agent-configuration", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}

	var secret corev1.Secret
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(found.Object, &secret); err != nil {
		t.Fatal(err)
	}

	content := map[string]string{}
	for key, value := range secret.Data {
		content[key] = string(value)
	}

	return content
}

func TestAgentIsConfigured(t *testing.T) {
	c := newCluster(t)
	access := clusteraccess.New(c)

	found, err := access.Agent(t.Context(), place())
	if diff := cmp.Diff(agent.Agent{}, found); diff != "" || err != nil {
		t.Fatalf("a new cluster has no agent: %v, -want +got:\n%s", err, diff)
	}

	if err := access.ConfigureAgent(t.Context(), place(), configuration("op-1")); err != nil {
		t.Fatal(err)
	}

	want := map[string]string{
		"CONNECTOR_URL": "https://connector.example.com", "RUNTIME_ID": "runtime-1", "TENANT": "tenant", "TOKEN": "hush-op-1",
	}
	if diff := cmp.Diff(want, c.configured(t)); diff != "" {
		t.Errorf("the Secret must have the keys that agents read, -want +got:\n%s", diff)
	}

	// A replica that read the cluster before the Secret existed.
	if err := access.ConfigureAgent(t.Context(), place(), configuration("op-0")); !failure.Is(err, failure.Transient) {
		t.Errorf("want a transient error for a Secret that was created in the meantime: got %v", err)
	}

	first, err := access.Agent(t.Context(), place())
	if err != nil || first.ConfiguredBy != "op-1" || first.Replaces != "" || first.Version == "" {
		t.Fatalf("got %+v, %v", first, err)
	}

	second := configuration("op-2")
	second.Over, second.Replaces = first.Version, "former"

	if err := access.ConfigureAgent(t.Context(), place(), second); err != nil {
		t.Fatal(err)
	}

	late := configuration("op-1")
	late.Over = first.Version

	err = access.ConfigureAgent(t.Context(), place(), late)
	if !failure.Is(err, failure.Transient) || strings.Contains(fmt.Sprint(err), "hush") {
		t.Errorf("want a transient error for a stale configuration: got %v", err)
	}

	found, err = access.Agent(t.Context(), place())
	if err != nil || found.ConfiguredBy != "op-2" || found.Replaces != "former" || c.configured(t)["TOKEN"] != "hush-op-2" {
		t.Errorf("the newer configuration was overwritten: got %+v, %v", found, err)
	}
}

func TestConnectionOfAnAgent(t *testing.T) {
	c := newCluster(t)
	access := clusteraccess.New(c)

	id := c.connect(t, map[string]any{
		"connectionState":       "SynchronizationFailed",
		"connectionStatus":      map[string]any{"error": ""},
		"synchronizationStatus": map[string]any{"error": "Director rejects the token" + strings.Repeat("!", 2000)},
	})

	found, err := access.Agent(t.Context(), place())
	if err != nil || found.Connection == nil || found.Connection.ID != id || found.Connection.State != agent.SynchronizationFailed {
		t.Fatalf("got %+v, %v", found.Connection, err)
	}

	if problems := found.Connection.Problems; len(problems) != 1 || len(problems[0]) != 1000 || !strings.HasPrefix(problems[0], "Director rejects the token!") {
		t.Errorf("the agent's message must be shortened: %q", problems)
	}

	for _, step := range []struct {
		reason, id string
		left       bool
	}{
		{"a connection with another ID stays", "another", true},
		{"the connection with the ID is removed", id, false},
		{"a repeated removal changes nothing", id, false},
	} {
		if err := access.RemoveConnection(t.Context(), place(), step.id); err != nil {
			t.Fatalf("%s: %v", step.reason, err)
		}

		if found, err = access.Agent(t.Context(), place()); err != nil || (found.Connection != nil) != step.left {
			t.Errorf("%s: got %+v, %v", step.reason, found.Connection, err)
		}
	}
}

func TestIncompleteConnections(t *testing.T) {
	for name, tc := range map[string]struct {
		reason string
		status map[string]any
		want   agent.Connection
	}{
		"nothing yet": {"the agent has not written its status yet", nil, agent.Connection{}},
		"no text":     {"values of another type are ignored", map[string]any{"connectionState": map[string]any{}, "connectionStatus": "?"}, agent.Connection{}},
		"half a rune": {
			"a text cut within a character stays valid UTF-8",
			map[string]any{"connectionStatus": map[string]any{"error": "x" + strings.Repeat("é", 1000)}},
			agent.Connection{Problems: []string{"x" + strings.Repeat("é", 499)}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			c := newCluster(t)
			tc.want.ID = c.connect(t, tc.status)

			found, err := clusteraccess.New(c).Agent(t.Context(), place())
			if err != nil {
				t.Fatal(err)
			}

			if diff := cmp.Diff(&tc.want, found.Connection); diff != "" {
				t.Errorf("%s, -want +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestAgentFailures(t *testing.T) {
	quoting := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusForbidden)
		_, _ = fmt.Fprintf(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","message":"no %s hush-op-1","reason":"Forbidden","code":403}`, r.Method)
	}))
	t.Cleanup(quoting.Close)

	hostile := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusForbidden)
		_, _ = fmt.Fprintf(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","message":"a\u001b[31m\u0000\n%s","reason":"Forbidden","code":403}`, strings.Repeat("x", 100_000))
	}))
	t.Cleanup(hostile.Close)

	outage := failure.New(failure.Transient, "Gardener is unavailable").WithReason("unavailable", failure.ComponentGardener)

	for name, tc := range map[string]struct {
		reason    string
		cluster   *cluster
		component string
	}{
		"no kubeconfig": {"Gardener failed", &cluster{err: outage}, failure.ComponentGardener},
		"unreachable":   {"the API server of the cluster failed", &cluster{kubeconfig: kubeconfig(t, "http://127.0.0.1:1", nil, certificate.Pair{})}, failure.ComponentRuntime},
		"hostile":       {"the cluster belongs to a tenant", &cluster{kubeconfig: kubeconfig(t, hostile.URL, nil, certificate.Pair{})}, failure.ComponentRuntime},
		"forbidding":    {"the error of the cluster may quote the request", &cluster{kubeconfig: kubeconfig(t, quoting.URL, nil, certificate.Pair{})}, failure.ComponentRuntime},
	} {
		t.Run(name, func(t *testing.T) {
			access := clusteraccess.New(tc.cluster)
			_, unread := access.Agent(t.Context(), place())

			for call, err := range map[string]error{
				"read": unread, "configure": access.ConfigureAgent(t.Context(), place(), configuration("op-1")),
				"remove": access.RemoveConnection(t.Context(), place(), "id"),
			} {
				known := failure.Of(err)
				if known.Kind != failure.Transient || known.Component != tc.component || strings.Contains(known.Text, "127.0.0.1") {
					t.Errorf("%s, %s: got %s of %s, %q", tc.reason, call, known.Kind, known.Component, known.Text)
				}

				if len(known.Text) > 2000 || strings.ContainsFunc(known.Text, unicode.IsControl) {
					t.Errorf("%s, %s: got %d bytes: %.200q", tc.reason, call, len(known.Text), known.Text)
				}

				if call == "configure" && strings.Contains(fmt.Sprint(err), "hush") {
					t.Errorf("%s: the log contains the token: %v", tc.reason, err)
				}
			}
		})
	}
}
