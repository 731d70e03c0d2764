package update

import (
	"context"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/environment-broker/environment-broker/internal/clients/reconciler"
	"github.com/environment-broker/environment-broker/internal/environment"
	"github.com/environment-broker/environment-broker/internal/sandbox/fakereconciler"
	"github.com/environment-broker/environment-broker/internal/secret"
	"github.com/environment-broker/environment-broker/process"
	"github.com/environment-broker/environment-broker/process/provisionerwait"
	"github.com/environment-broker/environment-broker/process/reconciling"
	"github.com/environment-broker/environment-broker/process/stepstest"
)

func (w *fixture) AdminKubeconfig(context.Context, environment.Instance) (secret.String, error) {
	return `{clusters: [{name: c, cluster: {server: "https://api.example.com"}}]}`, nil
}

// TestKymaByInstaller checks which system changes Kyma: the one that has installed it.
func TestKymaByInstaller(t *testing.T) {
	credentials := &environment.ServiceManager{ClientID: "client", ClientSecret: "new"}
	modules := []string{"btp-operator", "eventing"}

	cases := map[string]struct {
		reason        string
		installer     environment.KymaInstaller
		modules       []string
		credentials   *environment.ServiceManager
		wantOrdered   bool
		wantConfigure bool
	}{
		"Provisioner":  {reason: "the Provisioner changes modules", installer: environment.InstallerProvisioner, modules: modules, wantOrdered: true},
		"Former":       {reason: "an instance without an installer has that of former releases", modules: modules, wantOrdered: true},
		"Reconciler":   {reason: "the Reconciler changes modules", installer: environment.InstallerReconciler, modules: modules, wantConfigure: true},
		"Credentials":  {reason: "the configuration of the Reconciler has the credentials", installer: environment.InstallerReconciler, credentials: credentials, wantConfigure: true},
		"Secret":       {reason: "the Provisioner's Kyma reads them from the Secret", installer: environment.InstallerProvisioner, credentials: credentials},
		"OnlyTheShoot": {reason: "Kyma does not change", installer: environment.InstallerReconciler},
	}

	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			simulated := fakereconciler.New().Quick()
			server := httptest.NewServer(simulated)
			t.Cleanup(server.Close)

			config := reconciler.DefaultConfig()
			config.URL = server.URL

			w := newFixture()
			w.status.State = "Succeeded"
			w.instance.Request.Cluster.Kyma = &environment.Kyma{Version: "1.0.0", Modules: []string{"btp-operator"}, Installer: c.installer}

			change := environment.UnchangedUpdate(w.instance)
			change.Cluster.AutoScalerMax = 9
			change.Cluster.ServiceManager = c.credentials

			if c.modules != nil {
				changed := *change.Cluster.Kyma
				changed.Modules = c.modules
				change.Cluster.Kyma = &changed
			}

			tested := Process(Options{
				Provisioner: w, Instances: w, Kyma: w, Access: w, Limit: time.Hour,
				Waiter: provisionerwait.Waiter{Operations: w, Limit: time.Hour, Pace: func(time.Duration) time.Duration { return pace }},
				Reconciler: reconciling.Reconciler{
					Client: reconciler.New(config, http.DefaultTransport), Objects: stepstest.New(), Kubeconfigs: w, Limit: time.Hour,
				},
			})

			operation := process.NewOperation(process.Record{ID: "op-1", InstanceID: "instance-1"}, environment.Data{Update: &change}, time.Now())
			if _, wait, err := stepstest.Run(t, tested.Stages, operation); err != nil || wait != 0 {
				t.Fatal(wait, err)
			}

			if ordered := len(w.modules) > 0; ordered != c.wantOrdered {
				t.Errorf("%s: the Provisioner got %v", c.reason, w.modules)
			}

			clusters := simulated.Clusters()
			if configured := len(clusters) > 0; configured != c.wantConfigure {
				t.Fatalf("%s: the Reconciler got %v", c.reason, simulated.Holds())
			}

			if !c.wantConfigure {
				return
			}

			var names []string
			for _, component := range clusters["runtime-1"].Kyma.Components {
				names = append(names, component.Component)
			}

			if diff := cmp.Diff(w.instance.Request.Cluster.Kyma.Modules, names); diff != "" {
				t.Errorf("%s: components -want +got\n%s", c.reason, diff)
			}

			if values := clusters["runtime-1"].Kyma.Components[0].Configuration; c.credentials != nil && (len(values) < 2 || values[1].Value != "new" || !values[1].Secret) {
				t.Errorf("%s: the values of btp-operator are %v", c.reason, len(values))
			}

			if kyma := w.instance.Request.Cluster.Kyma; kyma.Installer != environment.InstallerReconciler || kyma.Version != "1.0.0" {
				t.Errorf("%s: the row has %+v", c.reason, kyma)
			}
		})
	}
}
