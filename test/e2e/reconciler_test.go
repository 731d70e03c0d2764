package e2e

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	broker "github.com/environment-broker/environment-broker/broker/service"
	"github.com/environment-broker/environment-broker/internal/environment"
	"github.com/environment-broker/environment-broker/internal/operatorapi"
	"github.com/environment-broker/environment-broker/internal/sandbox/fakereconciler"
	"github.com/environment-broker/environment-broker/internal/sandbox/simulator"
	provisioner "github.com/environment-broker/environment-broker/provisioner/service"
	"github.com/environment-broker/environment-broker/test/harness"
)

// TestKymaByReconciler creates an instance on which the Reconciler installs Kyma, changes its modules, upgrades it and deletes it.
// The Provisioner installs nothing.
func TestKymaByReconciler(t *testing.T) {
	t.Parallel()

	simulated := fakereconciler.New().Quick()
	server := httptest.NewServer(simulator.NewHandler(simulated))
	t.Cleanup(server.Close)

	e := start(t, harness.SQLite, 200*time.Millisecond, func(broker *broker.Config, _ *provisioner.Config) {
		broker.Kyma.Version, broker.Kyma.Installer = "1.0.0", environment.InstallerReconciler
		broker.Reconciler.URL, broker.Gardener.ShootDomain = server.URL+"/reconciler", "example.com"
	})

	// want checks the version and the components of the only cluster in the Reconciler.
	want := func(when, version string, components ...string) {
		t.Helper()

		clusters := simulated.Clusters()
		if len(clusters) != 1 {
			t.Fatalf("%s: the Reconciler has %v", when, simulated.Holds())
		}

		for id, cluster := range clusters {
			names := []string{}

			for _, component := range cluster.Kyma.Components {
				names = append(names, component.Component)

				if value := component.Configuration[0].Value; value != cluster.Metadata.ShootName+".example.com" {
					t.Errorf("%s: the domain of %s is %v", when, component.Component, value)
				}
			}

			if diff := cmp.Diff(components, names); diff != "" || cluster.Kyma.Version != version || cluster.Metadata.InstanceID != "mine" {
				t.Errorf("%s: Kyma %s of %s %s, -want +got\n%s", when, cluster.Kyma.Version, id, cluster.Metadata.InstanceID, diff)
			}

			if simulated.States()[id].Status != "ready" {
				t.Errorf("%s: the Reconciler has %v", when, simulated.Holds())
			}
		}

		if found := e.modules("mine"); len(found) != 0 {
			t.Errorf("%s: the Provisioner has installed %v", when, found)
		}
	}

	e.Create("mine", harness.PlanPreview)
	e.WantSucceeded("mine")
	want("the creation", "1.0.0", "cluster-essentials", "compass-runtime-agent", "eventing", "serverless")

	e.Update("mine", map[string]any{"parameters": list("eventing")})
	e.WantSucceeded("mine")
	want("the update", "1.0.0", "cluster-essentials", "compass-runtime-agent", "eventing")

	e.wantUpgraded(e.upgrade(environment.KindUpgradeKyma, "mine", operatorapi.Upgrade{Version: "1.1.0"}), "Kyma was upgraded to 1.1.0")
	want("the upgrade", "1.1.0", "cluster-essentials", "compass-runtime-agent", "eventing")

	e.Send(http.MethodPost, "/runtimes/mine/renewCredentials", operatorapi.CredentialRenewal{Reason: "a test"}, http.StatusAccepted)
	e.Until("the Reconciler has a renewed kubeconfig", func() bool {
		for _, cluster := range simulated.Clusters() {
			return strings.HasPrefix(cluster.Runtime.Description, "renewal ") && cluster.Kyma.Version == "1.1.0" && len(cluster.Kyma.Components) == 3
		}

		return false
	})

	e.Delete("mine", harness.PlanPreview)
	e.WantGone("mine")

	if left := simulated.Holds(); len(left) > 0 {
		t.Errorf("after the deletion, the Reconciler has %v", left)
	}
}
