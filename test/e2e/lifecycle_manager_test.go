package e2e

import (
	"encoding/base64"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	broker "github.com/environment-broker/environment-broker/broker/service"
	"github.com/environment-broker/environment-broker/internal/sandbox/fakecontrolplane"
	provisioner "github.com/environment-broker/environment-broker/provisioner/service"
	"github.com/environment-broker/environment-broker/test/harness"
)

// TestLifecycleManager orders an instance on which Lifecycle Manager installs Kyma, changes the instance's modules, and deletes it.
func TestLifecycleManager(t *testing.T) {
	t.Parallel()

	plane := fakecontrolplane.New()
	server := httptest.NewServer(plane)
	t.Cleanup(server.Close)

	path := filepath.Join(t.TempDir(), "kubeconfig")
	if err := os.WriteFile(path, fakecontrolplane.Kubeconfig(server.URL), 0o600); err != nil {
		t.Fatal(err)
	}

	e := start(t, harness.SQLite, 100*time.Millisecond, func(c *broker.Config, _ *provisioner.Config) {
		c.LifecycleManager.Enabled, c.Kyma.KubeconfigPath, c.Kyma.Version, c.Kyma.OnDemandVersion = true, path, "", false
	})

	wantModules := func(want ...string) {
		t.Helper()

		resources := plane.Objects("Kyma")
		if len(resources) != 1 {
			t.Fatalf("the control plane has %d Kyma resources", len(resources))
		}

		state, _, _ := unstructured.NestedString(resources[0].Object, "status", "state")
		if diff := cmp.Diff(want, fakecontrolplane.Modules(resources[0])); diff != "" || state != "Ready" {
			t.Errorf("state %s, modules: -want +got\n%s", state, diff)
		}
	}

	e.Create("managed", harness.PlanPreview)
	e.WantSucceeded("managed")
	wantModules("eventing", "serverless")

	config, _, _ := unstructured.NestedString(plane.Objects("Secret")[0].Object, "data", "config")

	kubeconfig, err := base64.StdEncoding.DecodeString(config)
	if err != nil {
		t.Fatal(err)
	}

	if _, err := harness.RuntimeClient(t, kubeconfig).CoreV1().Namespaces().List(t.Context(), metav1.ListOptions{}); err != nil {
		t.Errorf("the kubeconfig in the Secret does not work: %v", err)
	}

	e.Update("managed", map[string]any{"parameters": map[string]any{"modules": map[string]any{"list": []any{map[string]any{"name": "serverless"}}}}})
	e.WantSucceeded("managed")
	wantModules("serverless")

	e.Delete("managed", harness.PlanPreview)
	e.WantGone("managed")

	if left := plane.Holds(); len(left) > 0 {
		t.Errorf("the control plane still has %v", left)
	}
}
