package upgradekyma

import (
	"context"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/environment-broker/environment-broker/internal/clients/reconciler"
	"github.com/environment-broker/environment-broker/internal/environment"
	"github.com/environment-broker/environment-broker/internal/sandbox/fakereconciler"
	"github.com/environment-broker/environment-broker/internal/secret"
	"github.com/environment-broker/environment-broker/process"
	"github.com/environment-broker/environment-broker/process/reconciling"
	"github.com/environment-broker/environment-broker/process/stepstest"
	"github.com/environment-broker/environment-broker/process/upgrading"
)

// componentKyma is the Kyma of the fixture with a component, which the Reconciler requires.
type componentKyma struct{ *fixture }

func (k componentKyma) Complete(ctx context.Context, instance environment.Instance) (*environment.Kyma, error) {
	completed, err := k.fixture.Complete(ctx, instance)
	completed.Installation.Components = []environment.KymaComponent{{Name: "istio"}}

	return completed, err
}

func (w *fixture) AdminKubeconfig(context.Context, environment.Instance) (secret.String, error) {
	return `{clusters: [{name: c, cluster: {server: "https://api.example.com"}}]}`, nil
}

// TestUpgradeByReconciler checks that the Reconciler upgrades the Kyma that it has installed, that a dry run calls no system, and that a
// removal of the runtime preempts the upgrade.
func TestUpgradeByReconciler(t *testing.T) {
	cases := map[string]struct {
		reason  string
		upgrade environment.Upgrade
		ending  bool
		want    string
	}{
		"Upgrade": {"the Reconciler gets the new version", environment.Upgrade{Version: "3.0.0"}, false, "3.0.0"},
		"Default": {"or the default version", environment.Upgrade{}, false, "2.0.0"},
		"DryRun":  {"a dry run calls nobody", environment.Upgrade{Version: "3.0.0", DryRun: true}, false, ""},
		"Ending":  {"the runtime is being removed", environment.Upgrade{Version: "3.0.0"}, true, ""},
	}

	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			simulated := fakereconciler.New().Quick()
			server := httptest.NewServer(simulated)
			t.Cleanup(server.Close)

			config := reconciler.DefaultConfig()
			config.URL = server.URL

			w := newFixture()
			w.ending = c.ending
			w.instance.Request.Cluster.Kyma.Installer = environment.InstallerReconciler
			runtimeID := w.instance.RuntimeID

			tested := Process(Options{
				Options: upgrading.Options{Instances: w}, Provisioner: w, Kyma: componentKyma{w}, Access: w,
				Reconciler: reconciling.Reconciler{
					Client: reconciler.New(config, http.DefaultTransport), Objects: stepstest.New(), Kubeconfigs: w, Limit: time.Hour,
				},
			})

			operation := process.NewOperation(process.Record{ID: "op-1", InstanceID: w.instance.ID}, environment.Data{Upgrade: &c.upgrade}, time.Now())
			if _, wait, err := stepstest.Run(t, tested.Stages, operation); err != nil || wait != 0 {
				t.Fatal(wait, err)
			}

			got := simulated.Clusters()[runtimeID].Kyma.Version
			if got != c.want || len(w.orders) != 0 {
				t.Errorf("%s: the Reconciler has version %q, the Provisioner %v", c.reason, got, w.orders)
			}

			if kyma := w.instance.Request.Cluster.Kyma; c.want != "" && (kyma.Version != c.want || kyma.Installer != environment.InstallerReconciler) {
				t.Errorf("%s: the row has %+v", c.reason, kyma)
			}
		})
	}
}
