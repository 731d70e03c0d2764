package catalog_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/environment-broker/environment-broker/broker/catalog"
	"github.com/environment-broker/environment-broker/internal/environment"
)

// kymaOptions returns the options of a broker that installs Kyma.
func kymaOptions() catalog.Options {
	configured := options()
	configured.KymaVersion, configured.KymaVersionOnDemand = "1.1.0", true

	return configured
}

// moduleSection is the kyma section of a plan with three modules. Module tracing depends on module monitoring.
const moduleSection = `kyma:
  profile: Production
  components:
    - {name: cluster-essentials, namespace: kyma-system, configuration: {logLevel: warn, domain: example.com}}
    - {name: compass-runtime-agent, namespace: compass-system}
  additionalComponents:
    1.1.0: [{name: dns, namespace: kyma-system}]
  modules:
    - {name: eventing, namespace: kyma-system, default: true}
    - {name: monitoring, namespace: kyma-system, displayName: Monitoring}
    - {name: tracing, namespace: kyma-system, dependsOn: [monitoring]}
`

// withKyma returns the preview plan with the given kyma section.
func withKyma(tb testing.TB, section string, options catalog.Options) (*catalog.Plan, error) {
	tb.Helper()

	text := string(file(tb, "plans/preview.yaml"))
	before, rest, _ := strings.Cut(text, "kyma:\n")
	_, after, _ := strings.Cut(rest, "\noffers:")

	read, err := catalog.Load(shipped(tb, map[string]string{"plans/preview.yaml": before + section + "\noffers:" + after}), options)
	if err != nil {
		return nil, err
	}

	return read.Plan(serviceID, planPreview)
}

func moduleplan(tb testing.TB) *catalog.Plan {
	tb.Helper()

	plan, err := withKyma(tb, moduleSection, kymaOptions())
	if err != nil {
		tb.Fatal(err)
	}

	return plan
}

func TestOrderedModules(t *testing.T) {
	t.Parallel()

	plan := moduleplan(t)

	for name, test := range map[string]struct {
		parameters string
		want       []string
		err        string
	}{
		"Absent":       {`{}`, []string{"eventing"}, ""},
		"Default":      {`{"modules": {"default": true}}`, []string{"eventing"}, ""},
		"Declined":     {`{"modules": {"default": false}}`, []string{}, ""},
		"Nothing":      {`{"modules": {}}`, []string{"eventing"}, ""},
		"EmptyList":    {`{"modules": {"list": []}}`, []string{}, ""},
		"List":         {`{"modules": {"list": [{"name": "tracing"}, {"name": "monitoring"}]}}`, []string{"monitoring", "tracing"}, ""},
		"Dependency":   {`{"modules": {"list": [{"name": "tracing"}]}}`, nil, "tracing requires monitoring"},
		"Both":         {`{"modules": {"default": true, "list": [{"name": "monitoring"}]}}`, nil, "not both"},
		"Unknown":      {`{"modules": {"list": [{"name": "nothing"}]}}`, nil, "modules.list.0.name"},
		"Repeated":     {`{"modules": {"list": [{"name": "monitoring"}, {"name": "monitoring"}]}}`, nil, "modules.list"},
		"UnknownField": {`{"modules": {"list": [{"name": "monitoring", "channel": "fast"}]}}`, nil, "channel"},
	} {
		got, err := resolve(plan, order{InstanceID: instanceID, Parameters: json.RawMessage(test.parameters)})

		switch {
		case test.err == "" && err == nil:
			if diff := cmp.Diff(&environment.Kyma{Modules: test.want}, got.Cluster.Kyma); diff != "" {
				t.Errorf("%s: -want +got\n%s", name, diff)
			}
		case test.err == "" || err == nil || !strings.Contains(err.Error(), test.err):
			t.Errorf("%s: got error %v, want %q", name, err, test.err)
		}
	}
}

func TestUpdatedModules(t *testing.T) {
	t.Parallel()

	plan := moduleplan(t)

	instance, violations := plan.Resolve(order{InstanceID: instanceID, Parameters: json.RawMessage(`{"kymaVersion": "1.0.0"}`)}.instance())
	if len(violations) > 0 {
		t.Fatal(violations.Err())
	}

	if want := (&environment.Kyma{Version: "1.0.0", Ordered: true, Modules: []string{"eventing"}}); !cmp.Equal(want, instance.Request.Cluster.Kyma) {
		t.Fatalf("-want +got\n%s", cmp.Diff(want, instance.Request.Cluster.Kyma))
	}

	for parameters, want := range map[string][]string{
		`{"modules": {"list": [{"name": "monitoring"}]}}`: {"monitoring"},
		`{"modules": {"default": false}}`:                 {},
		`{"autoScalerMax": 5}`:                            {"eventing"},
		`{"kymaVersion": "1.0.0"}`:                        {"eventing"},
	} {
		updated, err := plan.Update(instance, json.RawMessage(parameters))
		if kyma := updated.Cluster.Kyma; err != nil || !cmp.Equal(want, kyma.Modules) || kyma.Version != "1.0.0" {
			t.Errorf("%s: got %+v, %v", parameters, kyma, err)
		}
	}

	if got := instance.Request.Cluster.Kyma.Modules; !cmp.Equal(got, []string{"eventing"}) {
		t.Errorf("an update changed the instance: %v", got)
	}

	if updated, err := plan.Update(instance, json.RawMessage(`{"modules": {}}`)); err != nil || string(updated.Parameters) != `{}` ||
		!cmp.Equal(updated.Cluster.Kyma.Modules, []string{"eventing"}) {
		t.Errorf("modules without fields are treated as absent: got %s, %v", updated.Parameters, err)
	}

	if _, err := plan.Update(instance, json.RawMessage(`{"kymaVersion": "1.1.0"}`)); err == nil || !strings.Contains(err.Error(), "cannot be changed after creation") {
		t.Errorf("another version: %v", err)
	}

	instance.Request.Cluster.Kyma = nil
	if _, err := plan.Update(instance, json.RawMessage(`{"modules": {"default": true}}`)); err == nil || !strings.Contains(err.Error(), "created without Kyma") {
		t.Errorf("modules of a runtime without Kyma: %v", err)
	}
}

// TestUpdatedModulesWithoutKyma updates an instance that was ordered with modules after the operator has switched Kyma off. The plan
// then has no modules parameter, so an update can repeat the modules, but not change them.
func TestUpdatedModulesWithoutKyma(t *testing.T) {
	t.Parallel()

	off, err := withKyma(t, moduleSection, options())
	if err != nil {
		t.Fatal(err)
	}

	ordered := order{InstanceID: instanceID, Parameters: json.RawMessage(`{"modules": {"list": [{"name": "monitoring"}]}}`)}.instance()

	instance, violations := moduleplan(t).Resolve(ordered)
	if len(violations) > 0 {
		t.Fatal(violations.Err())
	}

	if updated, err := off.Update(instance, instance.Request.Parameters); err != nil || string(updated.Parameters) != `{}` {
		t.Errorf("the same modules: %s, %v", updated.Parameters, err)
	}

	for _, parameters := range []string{`{"modules": {"list": [{"name": "eventing"}]}}`, `{"modules": {"default": true}}`, `{"modules": {"default": false}}`} {
		if _, err := off.Update(instance, json.RawMessage(parameters)); err == nil || !strings.Contains(err.Error(), "modules cannot be changed after creation") {
			t.Errorf("other modules, %s: %v", parameters, err)
		}
	}
}

func TestInstallation(t *testing.T) {
	t.Parallel()

	plan := moduleplan(t)

	got, err := plan.Installation(environment.Kyma{Version: "1.1.0", Modules: []string{"monitoring"}})
	if err != nil {
		t.Fatal(err)
	}

	want := &environment.KymaInstallation{Version: "1.1.0", Profile: "Production", Components: []environment.KymaComponent{
		{Name: "cluster-essentials", Namespace: "kyma-system", Configuration: []environment.KymaEntry{{Key: "domain", Value: "example.com"}, {Key: "logLevel", Value: "warn"}}},
		{Name: "compass-runtime-agent", Namespace: "compass-system"},
		{Name: "dns", Namespace: "kyma-system"},
		{Name: "monitoring", Namespace: "kyma-system"},
	}}
	if diff := cmp.Diff(want, got, revealed); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}

	if got, err := plan.Installation(environment.Kyma{Version: "1.0.0"}); err != nil || len(got.Components) != 2 {
		t.Errorf("the components of another version: %v, %v", got, err)
	}

	if _, err := plan.Installation(environment.Kyma{Version: "1.0.0", Modules: []string{"gone"}}); err == nil ||
		!strings.Contains(err.Error(), `no longer has the module "gone"`) {
		t.Errorf("a module that the plan no longer has: %v", err)
	}
}

// TestKymaInTheCatalog checks that marketplaces promise exactly what the Provisioner installs.
func TestKymaInTheCatalog(t *testing.T) {
	t.Parallel()

	for name, test := range map[string]struct {
		change            func(*catalog.Options)
		modules, versions bool
	}{
		"Off":      {func(o *catalog.Options) { o.KymaVersion, o.KymaVersionOnDemand = "", false }, false, false},
		"On":       {func(o *catalog.Options) { o.KymaVersionOnDemand = false }, true, false},
		"OnDemand": {func(*catalog.Options) {}, true, true},
	} {
		configured := kymaOptions()
		test.change(&configured)

		read, err := catalog.Load(shipped(t, nil), configured)
		if err != nil {
			t.Fatal(err)
		}

		body := string(read.Published().Body)
		for text, want := range map[string]bool{
			`"Kyma modules to choose from: eventing (default), serverless (default)"`: test.modules,
			`"Kyma with cluster-essentials, compass-runtime-agent"`:                   test.modules,
			`"enum":["eventing","serverless"]`:                                        test.modules,
			`"kymaVersion":{`:                                                         test.versions,
		} {
			if strings.Contains(body, text) != want {
				t.Errorf("%s: the catalog contains %s: %t, want %t", name, text, !want, want)
			}
		}
	}
}

func TestInvalidKyma(t *testing.T) {
	t.Parallel()

	for section, want := range map[string]string{
		strings.Replace(moduleSection, "Production", "Huge", 1):                               `profile "Huge" is neither`,
		strings.Replace(moduleSection, "name: compass-runtime-agent", "name: agent", 1):       "components must contain compass-runtime-agent",
		strings.Replace(moduleSection, "name: monitoring", "name: eventing", 1):               `component "eventing" appears twice`,
		strings.Replace(moduleSection, "name: dns", "name: eventing", 1):                      `additionalComponents 1.1.0: component "eventing" appears twice`,
		strings.Replace(moduleSection, "    1.1.0:", "    ../1:", 1):                          `"../1" is not a version`,
		strings.Replace(moduleSection, "dependsOn: [monitoring]", "dependsOn: [x]", 1):        `depends on "x", which is not a module`,
		strings.Replace(moduleSection, "dependsOn:", "default: true, dependsOn:", 1):          `"tracing" is a default, but "monitoring"`,
		strings.Replace(moduleSection, "displayName: Monitoring", "namespace: Kyma_", 1):      `key "namespace" already set`,
		strings.Replace(moduleSection, "monitoring, namespace: kyma-system", "monitoring", 1): `"" is not a namespace`,
		"": "the parameter modules requires modules",
	} {
		if _, err := withKyma(t, section, kymaOptions()); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}

	configured := options()
	configured.KymaVersionOnDemand = true

	if _, err := catalog.Load(shipped(t, nil), configured); err == nil || !strings.Contains(err.Error(), "requires APP_KYMA_VERSION") {
		t.Errorf("versions on demand without a default: %v", err)
	}
}

// revealed makes cmp compare the secret values.
var revealed = cmp.Transformer("reveal", func(entry environment.KymaEntry) [3]any {
	return [3]any{entry.Key, entry.Value.Reveal(), entry.Secret}
})

// TestAgentIsForTheProvisioner checks that a plan needs the runtime agent only if the Provisioner installs Kyma, and that it
// needs at least one component with every installer.
func TestAgentIsForTheProvisioner(t *testing.T) {
	t.Parallel()

	configured := kymaOptions()
	configured.KymaInstaller = environment.InstallerReconciler

	if _, err := withKyma(t, strings.Replace(moduleSection, "name: compass-runtime-agent", "name: agent", 1), configured); err != nil {
		t.Errorf("a plan without the agent: %v", err)
	}

	before, _, _ := strings.Cut(moduleSection, "    - {name: cluster-essentials")
	_, after, _ := strings.Cut(moduleSection, "namespace: compass-system}\n")

	if _, err := withKyma(t, before+after, configured); err == nil || !strings.Contains(err.Error(), "there are no components") {
		t.Errorf("a plan without components: %v", err)
	}
}
