package provisioning

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/environment-broker/environment-broker/internal/clients/reconciler"
	"github.com/environment-broker/environment-broker/internal/environment"
	"github.com/environment-broker/environment-broker/internal/sandbox/fakereconciler"
	"github.com/environment-broker/environment-broker/internal/secret"
	"github.com/environment-broker/environment-broker/process/reconciling"
	"github.com/environment-broker/environment-broker/process/stepstest"
)

// planKyma completes Kyma with three components and overrides the values of one.
type planKyma struct{}

func (planKyma) Complete(_ context.Context, instance environment.Instance) (*environment.Kyma, error) {
	completed := *instance.Request.Cluster.Kyma
	completed.Version = "1.0.0"
	completed.Installation = &environment.KymaInstallation{Version: "1.0.0", Components: []environment.KymaComponent{
		{Name: "istio"}, {Name: "btp-operator"}, {Name: "busola-migrator"},
	}}

	return &completed, nil
}

func (planKyma) Overrides(_ context.Context, instance environment.Instance) (*environment.Kyma, error) {
	overridden := *instance.Request.Cluster.Kyma
	if overridden.Installation != nil {
		overridden.Installation.Set("istio", environment.KymaEntry{Key: "password", Value: "secret-override", Secret: true})
	}

	return &overridden, nil
}

// runtimes implements RuntimeAccess for runtimes that respond.
type runtimes struct{ RuntimeAccess }

func (runtimes) Probe(context.Context, environment.Instance) error { return nil }

func (runtimes) ApplyServiceManager(context.Context, environment.Instance, environment.ServiceManager) error {
	return nil
}

type kubeconfigs struct{}

func (kubeconfigs) AdminKubeconfig(context.Context, environment.Instance) (secret.String, error) {
	return `{clusters: [{name: c, cluster: {server: "https://api.example.com"}}], users: [{name: u, user: {token: secret-token}}]}`, nil
}

// TestKymaByReconciler checks that the Provisioner gets no Kyma, that the Reconciler gets the whole configuration, and that nothing secret
// is stored.
func TestKymaByReconciler(t *testing.T) {
	simulated := fakereconciler.New().Quick()
	server := httptest.NewServer(simulated)
	t.Cleanup(server.Close)

	config := reconciler.DefaultConfig()
	config.URL = server.URL

	ordered := instance()
	ordered.Request.Cluster.Kyma = &environment.Kyma{Modules: []string{}}
	ordered.Request.Cluster.ServiceManager = &environment.ServiceManager{
		ClientID: "client", ClientSecret: "secret-credential", URL: "https://sm.example.com", TokenURL: "https://tokens.example.com",
	}

	instances, provisioner, records := &fakeInstances{instance: ordered}, &fakeProvisioner{}, stepstest.New()
	process := Process(Options{
		Provisioner: provisioner, Instances: instances, Accounts: StaticAccounts{"aws": "aws-account"}, Kyma: planKyma{}, Access: runtimes{},
		Objects: records, Installer: environment.InstallerReconciler, Limit: time.Hour,
		Reconciler: reconciling.Reconciler{
			Client: reconciler.New(config, http.DefaultTransport), Objects: records, Kubeconfigs: kubeconfigs{}, Limit: time.Hour,
		},
	})

	var ran []string

	tested, operation := []string{"start", "create_runtime", "get_kubeconfig", "btp_operator", "create_kyma", "check_kyma"}, newOperation()

	for _, stage := range process.Stages {
		for _, task := range stage.Steps {
			if !slices.Contains(tested, stage.Name) || !task.When.Met(operation) {
				continue
			}

			ran = append(ran, task.Step.Name())
			operation = runStage(t, operation, task.Step)
		}

		stored, err := json.Marshal(operation.Data)
		if err != nil || strings.Contains(string(stored), "secret-override") || strings.Contains(string(stored), "secret-token") {
			t.Errorf("after stage %s, the data contain a secret: %s, %v", stage.Name, stored, err)
		}
	}

	want := []string{
		"Starting", "Provision_Initialization", "Resolve_Target_Secret", "Create_Runtime_Without_Kyma", "Get_Kubeconfig",
		"Inject_BTP_Operator_Credentials", "Create_Cluster_Configuration", "Check_Cluster_Configuration",
	}
	if diff := cmp.Diff(want, ran); diff != "" {
		t.Errorf("steps: -want +got\n%s", diff)
	}

	if kyma := provisioner.orders["op-1"].instance.Request.Cluster.Kyma; kyma.Installation != nil || kyma.Installer != environment.InstallerReconciler {
		t.Errorf("the Provisioner gets %+v", kyma)
	}

	got := map[string][]string{}

	for _, component := range simulated.Clusters()["runtime-of-op-1"].Kyma.Components {
		got[component.Component] = []string{}
		for _, entry := range component.Configuration {
			got[component.Component] = append(got[component.Component], entry.Key)
		}
	}

	wantEntries := map[string][]string{
		"istio":           {"password"},
		"btp-operator":    {"manager.secret.clientid", "manager.secret.clientsecret", "manager.secret.url", "manager.secret.sm_url", "manager.secret.tokenurl", "cluster.id"},
		"busola-migrator": {"deployment.env.kubeconfigID", "global.istio.gateway.name"},
	}
	if diff := cmp.Diff(wantEntries, got); diff != "" {
		t.Errorf("values: -want +got\n%s", diff)
	}

	if diff := cmp.Diff([]string{"cluster: created runtime-of-op-1"}, records.Lines()); diff != "" {
		t.Errorf("records: -want +got\n%s", diff)
	}
}

// TestInstallerIsChosenOnce checks that a repeated stage keeps the installer, that a retry chooses again, and that Lifecycle Manager, which
// the order has chosen, is never replaced.
func TestInstallerIsChosenOnce(t *testing.T) {
	operation := newOperation()
	operation.Data.Instance.Request.Cluster.Kyma = &environment.Kyma{}

	first := runStage(t, operation, initialization(planKyma{}, environment.InstallerReconciler))
	again := runStage(t, first, initialization(planKyma{}, environment.InstallerProvisioner))

	if kyma := again.Data.Instance.Request.Cluster.Kyma; !kyma.InstalledBy(environment.InstallerReconciler) || kyma.Installation != nil {
		t.Errorf("the repeated stage chose %+v", kyma)
	}

	again.ID = "retry"
	retried := runStage(t, again, initialization(planKyma{}, environment.InstallerProvisioner))

	if kyma := retried.Data.Instance.Request.Cluster.Kyma; !kyma.InstalledBy(environment.InstallerProvisioner) || kyma.Installation == nil {
		t.Errorf("the retry chose %+v", kyma)
	}

	operation.Data.Instance.Request.Cluster.Kyma = &environment.Kyma{Installer: environment.InstallerLifecycleManager}
	managed := runStage(t, operation, initialization(planKyma{}, environment.InstallerReconciler))

	if kyma := managed.Data.Instance.Request.Cluster.Kyma; !kyma.InstalledBy(environment.InstallerLifecycleManager) {
		t.Errorf("a plan with Lifecycle Manager got %+v", kyma)
	}
}

// TestOverridesForTheProvisioner checks that an order with Kyma for the Provisioner contains the values of busola-migrator.
func TestOverridesForTheProvisioner(t *testing.T) {
	operation := newOperation()
	operation.Data.Instance.Request.Cluster.Kyma = &environment.Kyma{}

	if ordersKyma(newOperation()) {
		t.Error("a runtime without Kyma gets overrides")
	}

	after := runStage(t, operation, initialization(planKyma{}, environment.InstallerProvisioner), overrides(planKyma{}), busolaMigratorOverrides())

	components := after.Data.Instance.Request.Cluster.Kyma.Installation.Components
	at := slices.IndexFunc(components, func(one environment.KymaComponent) bool { return one.Name == "busola-migrator" })

	if got := components[at].Configuration; len(got) != 2 || got[0].Value != "instance-1" || got[1].Value != "kyma-gateway" || !ordersKyma(after) {
		t.Errorf("got %v", got)
	}
}
