package e2e

import (
	"maps"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	broker "github.com/environment-broker/environment-broker/broker/service"
	provisioner "github.com/environment-broker/environment-broker/provisioner/service"
	"github.com/environment-broker/environment-broker/test/harness"
)

// withReleases makes the Provisioner use the sample releases, and the broker order the given version.
func withReleases(version string) func(*broker.Config, *provisioner.Config) {
	return func(broker *broker.Config, provisioner *provisioner.Config) {
		provisioner.Kyma.ReleasesPath = filepath.Join("..", "..", "resources", "releases")
		broker.Kyma.Version = version
	}
}

// modules returns the names of the Kyma ConfigMaps on an instance's runtime, each with its release.
func (e env) modules(id string) map[string]string {
	e.Helper()

	found, err := harness.RuntimeClient(e, e.kubeconfig(id)).CoreV1().ConfigMaps("kyma-system").List(e.Context(), metav1.ListOptions{})
	if err != nil {
		e.Fatal(err)
	}

	releases := map[string]string{}

	for _, one := range found.Items {
		if _, own := one.Data["release"]; own {
			releases[one.Name] = one.Data["release"]
		}
	}

	return releases
}

// wantModules fails the test unless the runtime contains exactly the given modules and cluster-essentials, all of the given version.
func (e env) wantModules(reason, id, version string, modules ...string) {
	e.Helper()

	want := map[string]string{"cluster-essentials": version}
	for _, name := range modules {
		want[name] = version
	}

	if diff := cmp.Diff(want, e.modules(id)); diff != "" {
		e.Errorf("%s: -want +got\n%s", reason, diff)
	}
}

// list returns a modules parameter that lists the named modules.
func list(names ...string) map[string]any {
	modules := []any{}
	for _, name := range names {
		modules = append(modules, map[string]any{"name": name})
	}

	return map[string]any{"modules": map[string]any{"list": modules}}
}

// order orders an instance of plan preview with the given parameters.
func (e env) order(id string, parameters map[string]any) {
	e.Helper()

	order := harness.Order(harness.PlanPreview)
	order["parameters"] = parameters
	e.Send(http.MethodPut, harness.InstancePath(id)+harness.Incomplete, order, http.StatusAccepted)
}

// TestModulesOfInstances orders instances with Kyma, changes their modules and deletes them.
func TestModulesOfInstances(t *testing.T) {
	t.Parallel()

	harness.EachDatabase(t, func(t *testing.T, database harness.Database) {
		e := start(t, database, 200*time.Millisecond, withReleases("1.0.0"))

		e.Create("standard", harness.PlanPreview)
		e.order("chosen", list("serverless"))
		e.order("none", map[string]any{"modules": map[string]any{"default": false}})
		e.Create("without", harness.PlanAWS)

		for _, id := range []string{"standard", "chosen", "none", "without"} {
			e.WantSucceeded(id)
		}

		e.wantModules("the default modules", "standard", "1.0.0", "eventing", "serverless")
		e.wantModules("the chosen modules", "chosen", "1.0.0", "serverless")
		e.wantModules("no module", "none", "1.0.0")

		if found := e.modules("without"); len(found) > 0 {
			t.Errorf("a plan without Kyma got %v", slices.Collect(maps.Keys(found)))
		}

		e.Update("chosen", map[string]any{"parameters": list("eventing")})
		e.WantSucceeded("chosen")
		e.wantModules("changed modules", "chosen", "1.0.0", "eventing")

		e.Update("chosen", map[string]any{"parameters": map[string]any{"modules": map[string]any{"default": true}, "autoScalerMax": 25}})
		e.WantSucceeded("chosen")
		e.wantModules("modules that are changed together with the cluster", "chosen", "1.0.0", "eventing", "serverless")

		fetched := e.Send(http.MethodGet, harness.InstancePath("chosen"), nil, http.StatusOK).Object("parameters")
		if diff := cmp.Diff(map[string]any{"modules": map[string]any{"default": true}, "autoScalerMax": 25.0}, fetched); diff != "" {
			t.Errorf("the parameters: -want +got\n%s", diff)
		}

		refused := e.Send(http.MethodPatch, harness.InstancePath("without")+harness.Incomplete,
			map[string]any{"service_id": harness.ServiceID, "parameters": list("eventing")}, http.StatusBadRequest)
		if !strings.Contains(refused.Text("description"), "modules: the plan has no such parameter") {
			t.Errorf("modules of a plan without Kyma: %s", refused.Raw)
		}

		e.Delete("chosen", harness.PlanPreview)
		e.WantGone("chosen")
	})
}

// TestModulesWithoutReleases checks that an order fails with a message for the operator if the Provisioner has no releases.
func TestModulesWithoutReleases(t *testing.T) {
	t.Parallel()

	e := start(t, harness.SQLite, 200*time.Millisecond, func(broker *broker.Config, _ *provisioner.Config) { broker.Kyma.Version = "1.0.0" })

	e.Create("mine", harness.PlanPreview)
	e.WantFailed("mine", "APP_KYMA_RELEASES_PATH")
	e.Delete("mine", harness.PlanPreview)
	e.WantGone("mine")
}
