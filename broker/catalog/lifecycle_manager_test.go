package catalog_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/environment-broker/environment-broker/broker/catalog"
	"github.com/environment-broker/environment-broker/internal/clients/lifecyclemanager"
	"github.com/environment-broker/environment-broker/internal/environment"
	"github.com/environment-broker/environment-broker/internal/failure"
)

// managerSection consists of the kyma and the lifecycleManager sections of a plan.
const managerSection = moduleSection + `lifecycleManager:
  channel: fast
  template: "{apiVersion: operator.kyma-project.io/v1beta2, kind: Kyma}"
  modules:
    - {name: istio, default: true}
    - {name: serverless, displayName: Functions, dependsOn: [istio], channel: regular, customResourcePolicy: Ignore}
`

// managerOptions returns the options of a broker with Lifecycle Manager.
func managerOptions() catalog.Options {
	configured := options()
	configured.LifecycleManager = true

	return configured
}

func managerPlan(tb testing.TB) *catalog.Plan {
	tb.Helper()

	plan, err := withKyma(tb, managerSection, managerOptions())
	if err != nil {
		tb.Fatal(err)
	}

	return plan
}

func TestModulesOfLifecycleManager(t *testing.T) {
	t.Parallel()

	plan := managerPlan(t)

	for parameters, want := range map[string][]lifecyclemanager.Module{
		`{}`:                              {{Name: "istio"}},
		`{"modules": {"default": false}}`: {},
		`{"modules": {"list": [{"name": "serverless"}, {"name": "istio"}]}}`: {
			{Name: "istio"}, {Name: "serverless", Channel: "regular", CustomResourcePolicy: "Ignore"},
		},
	} {
		got, err := resolve(plan, order{Parameters: []byte(parameters)})
		if err != nil {
			t.Fatal(err)
		}

		kyma := got.Cluster.Kyma
		if kyma.Installer != environment.InstallerLifecycleManager || kyma.Version != "" {
			t.Errorf("%s: got %+v", parameters, kyma)
		}

		settings, err := plan.LifecycleManagerSettings(*kyma)
		if err != nil {
			t.Fatal(err)
		}

		if diff := cmp.Diff(want, settings.Modules); diff != "" || settings.Channel != "fast" || settings.Template == "" {
			t.Errorf("%s: got %+v", parameters, settings)
		}
	}

	for parameters, want := range map[string]string{
		`{"modules": {"list": [{"name": "serverless"}]}}`: "serverless requires istio",
		`{"modules": {"list": [{"name": "eventing"}]}}`:   "modules",
		`{"kymaVersion": "1.1.0"}`:                        "kymaVersion",
	} {
		if _, err := resolve(plan, order{Parameters: []byte(parameters)}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %q", parameters, err, want)
		}
	}

	if _, err := plan.LifecycleManagerSettings(environment.Kyma{Installer: environment.InstallerLifecycleManager, Modules: []string{"gone"}}); !failure.Is(err, failure.Permanent) {
		t.Errorf("a module that the plan has lost: %v", err)
	}

	if _, err := plan.LifecycleManagerSettings(environment.Kyma{}); !failure.Is(err, failure.Permanent) {
		t.Errorf("Kyma of the Provisioner: %v", err)
	}
}

func TestLifecycleManagerInCatalog(t *testing.T) {
	t.Parallel()

	read, err := catalog.Load(shipped(t, nil), managerOptions())
	if err != nil {
		t.Fatal(err)
	}

	body := string(read.Published().Body)
	if !strings.Contains(body, `"Kyma","Kyma modules to choose from: eventing (default), serverless (default)"`) || strings.Contains(body, "cluster-essentials") {
		t.Error("the catalog does not promise the modules of Lifecycle Manager")
	}

	off, err := withKyma(t, managerSection, options())
	if err != nil {
		t.Fatal(err)
	}

	if got, err := resolve(off, order{Parameters: []byte(`{}`)}); err != nil || got.Cluster.Kyma != nil || slices.Contains(off.Parameters, "modules") {
		t.Errorf("with Lifecycle Manager turned off: %+v, %v", got.Cluster.Kyma, err)
	}

	provisioner, err := withKyma(t, managerSection, kymaOptions())
	if err != nil {
		t.Fatal(err)
	}

	if got, err := resolve(provisioner, order{Parameters: []byte(`{}`)}); err != nil || got.Cluster.Kyma.Installer != "" ||
		!cmp.Equal(got.Cluster.Kyma.Modules, []string{"eventing"}) {
		t.Errorf("with the Provisioner: %+v, %v", got.Cluster.Kyma, err)
	}
}

// TestChangeOfInstaller checks that the modules of an instance cannot be changed after another system has become the installer, but
// that an update can repeat them.
func TestChangeOfInstaller(t *testing.T) {
	t.Parallel()

	for _, former := range []bool{true, false} {
		plan := managerPlan(t)
		if former {
			plan = moduleplan(t)
		}

		created, violations := plan.Resolve(order{InstanceID: "i", Parameters: []byte(`{}`)}.instance())
		if len(violations) > 0 {
			t.Fatal(violations.Err())
		}

		created.Request.Cluster.Kyma = &environment.Kyma{}

		name := "istio"
		if former {
			created.Request.Cluster.Kyma.Installer, name = environment.InstallerLifecycleManager, "monitoring"
		}

		if _, err := plan.Update(created, []byte(`{"modules": {"list": [{"name": "`+name+`"}]}}`)); err == nil ||
			!strings.Contains(err.Error(), "modules requires a new instance") {
			t.Errorf("former installer is Lifecycle Manager: %t, got %v", former, err)
		}

		// Platforms that send all parameters with every update repeat the modules of the order, which the plan may no longer have.
		created.Request.Parameters = []byte(`{"modules": {"list": [{"name": "former"}]}}`)

		updated, err := plan.Update(created, []byte(`{"autoScalerMax": 7, "modules": {"list": [{"name": "former"}]}}`))
		if err != nil || string(updated.Parameters) != `{"autoScalerMax":7}` || updated.Cluster.AutoScalerMax != 7 {
			t.Errorf("the modules are repeated: %s, %v", updated.Parameters, err)
		}
	}
}

func TestInvalidLifecycleManager(t *testing.T) {
	t.Parallel()

	for section, want := range map[string]string{
		"{channel: Fast, modules: [{name: a, default: true}]}":              `channel "Fast"`,
		"{template: 'kind: Kyma', modules: [{name: a, default: true}]}":     "template must have a kind, and an apiVersion",
		"{modules: [{name: A, default: true}]}":                             `"A" is not a valid module name`,
		"{modules: [{name: a, default: true}, {name: a, default: true}]}":   `module "a" appears twice`,
		"{modules: [{name: a, channel: x, default: true}]}":                 `channel "x"`,
		"{modules: [{name: a, customResourcePolicy: Keep, default: true}]}": `customResourcePolicy "Keep"`,
		"{modules: [{name: a, default: true, dependsOn: [b]}]}":             `module "a" depends on "b"`,
		"{modules: [{name: a, namespace: b}]}":                              "namespace",
	} {
		if _, err := withKyma(t, moduleSection+"lifecycleManager: "+section+"\n", managerOptions()); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %q", section, err, want)
		}
	}
}

// TestLifecycleManagerBesideReconciler checks a plan with both sections: new runtimes get modules of Lifecycle Manager, and the components
// remain for runtimes on which the Reconciler has installed them.
func TestLifecycleManagerBesideReconciler(t *testing.T) {
	t.Parallel()

	both := kymaOptions()
	both.LifecycleManager, both.KymaInstaller, both.KymaVersionOnDemand = true, environment.InstallerReconciler, true

	plan, err := withKyma(t, managerSection, both)
	if err != nil {
		t.Fatal(err)
	}

	created, err := resolve(plan, order{Parameters: []byte(`{}`)})
	if err != nil || !created.Cluster.Kyma.InstalledBy(environment.InstallerLifecycleManager) || !cmp.Equal(created.Cluster.Kyma.Modules, []string{"istio"}) {
		t.Errorf("a new runtime: %+v, %v", created.Cluster.Kyma, err)
	}

	if _, err := resolve(plan, order{Parameters: []byte(`{"kymaVersion": "1.1.0"}`)}); err == nil {
		t.Error("an order may choose a version, although Lifecycle Manager has none")
	}

	installed := environment.Kyma{Version: "1.0.0", Installer: environment.InstallerReconciler, Modules: []string{"eventing"}}
	if installation, err := plan.Installation(installed); err != nil || installation.Components[len(installation.Components)-1].Name != "eventing" {
		t.Errorf("a runtime of the Reconciler: %+v, %v", installation, err)
	}

	read, err := catalog.Load(shipped(t, nil), both)
	if err != nil {
		t.Fatal(err)
	}

	if strings.Contains(string(read.Published().Body), "cluster-essentials") {
		t.Error("the catalog promises components that new runtimes do not get")
	}
}
