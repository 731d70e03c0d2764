package e2e

import (
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/environment-broker/environment-broker/internal/logging"
	"github.com/environment-broker/environment-broker/internal/sandbox/fakegarden"
	provisioner "github.com/environment-broker/environment-broker/provisioner/service"
)

// component is one of an order of Kyma, with its values as key, value pairs; passwords are secret.
func component(name, namespace string, values ...string) map[string]any {
	entries := []any{}
	for i := 0; i < len(values); i += 2 {
		entries = append(entries, map[string]any{
			"key": values[i], "value": values[i+1], "secret": strings.HasSuffix(values[i], "Password"),
		})
	}

	return map[string]any{"component": name, "namespace": namespace, "configuration": entries}
}

func kymaOf(version string, components ...map[string]any) map[string]any {
	return map[string]any{"version": version, "components": append(components, component("compass-runtime-agent", "compass-system"))}
}

const upgradeRuntime = `mutation ($id: String!, $config: UpgradeRuntimeInput!) { result: upgradeRuntime(id: $id, config: $config) { id runtimeID state } }`

// installed is what a runtime tells of itself, and what stands in it.
type installed struct {
	Told, Essentials, Retention, Password string
}

func (c clusters) installed(runtimeID string) installed {
	c.Helper()

	found := installed{Told: c.status(runtimeID, "kymaConfig { version }").RuntimeConfiguration.KymaConfig.Version}
	inside := c.inside(runtimeID).CoreV1()

	essentials, err := inside.ConfigMaps("kyma-system").Get(c.Context(), "cluster-essentials", metav1.GetOptions{})
	if err != nil {
		c.Fatal(err)
	}

	found.Essentials = essentials.Data["release"]

	monitoring, err := inside.ConfigMaps("kyma-system").Get(c.Context(), "monitoring", metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return found
	}

	if err != nil {
		c.Fatal(err)
	}

	admin, err := inside.Secrets("kyma-system").Get(c.Context(), "monitoring-admin", metav1.GetOptions{})
	if err != nil {
		c.Fatal(err)
	}

	found.Retention, found.Password = monitoring.Data["retention"], string(admin.Data["password"])
	if found.Password == "" {
		found.Password = admin.StringData["password"] // a simulated runtime keeps what it was given
	}

	return found
}

// same finds what is not installed as it should be.
func (c clusters) same(reason string, want, got installed) {
	c.Helper()

	if diff := cmp.Diff(want, got); diff != "" {
		c.Errorf("%s, -want +got:\n%s", reason, diff)
	}
}

// kymaStory has a runtime with Kyma made, upgraded, rolled back, put to sleep and removed. Begun is told of the runtime once it is there.
func kymaStory(t *testing.T, api client.WithWatch, begun func(c clusters, runtimeID string)) {
	t.Helper()

	c := newClusters(t, api, func(config *provisioner.Config) {
		config.Kyma.ReleasesPath = filepath.Join("..", "..", "resources", "releases")
	})
	monitoring := component("monitoring", "kyma-system", "retention", "2d", "adminPassword", "hush")
	order := func(kyma map[string]any) map[string]any {
		return map[string]any{"config": map[string]any{
			"runtimeInput": map[string]any{"name": "mine"}, "kymaConfig": kyma,
			"clusterConfig": map[string]any{"gardenerConfig": clusterOf("gcp"), "administrators": []string{"jane@example.com"}},
		}}
	}

	for want, kyma := range map[string]map[string]any{
		`there is no release "0.9.0"; there are 1.0.0, 1.1.0`: kymaOf("0.9.0"),
		`has no component "nothing"`:                          kymaOf("1.0.0", component("nothing", "kyma-system")),
		"needs a value for \"adminPassword\"":                 kymaOf("1.0.0", component("monitoring", "kyma-system")),
	} {
		if got := c.ask(provisionRuntime, order(kyma), &told{}); !strings.Contains(got, want) {
			t.Errorf("an order that nobody can carry out gives %q, want %q", got, want)
		}
	}

	made := c.order(provisionRuntime, order(kymaOf("1.0.0", monitoring)))
	c.succeeded(made.ID)
	begun(c, made.RuntimeID)

	poolIsKept := c.addsAPoolByHand("c-gcp")

	first := installed{Told: "1.0.0", Essentials: "1.0.0", Retention: "2d", Password: "hush"}
	c.same("what was ordered is installed", first, c.installed(made.RuntimeID))
	c.keepsSecrets(made.RuntimeID)

	upgrade := c.order(upgradeRuntime, map[string]any{"id": made.RuntimeID, "config": map[string]any{
		"kymaConfig": kymaOf("1.1.0", component("monitoring", "kyma-system", "retention", "9d")),
	}})
	c.succeeded(upgrade.ID)
	poolIsKept("an upgrade of Kyma")
	c.same("an upgrade is laid over what was ordered", installed{Told: "1.1.0", Essentials: "1.1.0", Retention: "9d", Password: "hush"},
		c.installed(made.RuntimeID))

	c.rollsBack(made.RuntimeID)
	poolIsKept("a roll back of Kyma")
	c.same("what was installed before is there again", first, c.installed(made.RuntimeID))

	smaller := c.order(upgradeRuntime, map[string]any{"id": made.RuntimeID, "config": map[string]any{"kymaConfig": kymaOf("1.1.0")}})
	c.succeeded(smaller.ID)
	c.same("what is not ordered any more goes", installed{Told: "1.1.0", Essentials: "1.1.0"}, c.installed(made.RuntimeID))

	asleep := c.order(`mutation ($id: String!) { result: hibernateRuntime(id: $id) { id } }`, map[string]any{"id": made.RuntimeID})
	c.succeeded(asleep.ID)

	refused := c.ask(upgradeRuntime, map[string]any{"id": made.RuntimeID, "config": map[string]any{"kymaConfig": kymaOf("1.0.0")}}, &told{})
	if !strings.Contains(refused, "is hibernated: wake it up first") {
		t.Errorf("the upgrade of a runtime that sleeps gives %q", refused)
	}

	awake := c.order(`mutation ($id: String!) { result: wakeUpRuntime(id: $id) { id } }`, map[string]any{"id": made.RuntimeID})
	c.succeeded(awake.ID)

	services := c.ordersServices(made.RuntimeID)

	var removal string
	if refused := c.ask(`mutation ($id: String!) { result: deprovisionRuntime(id: $id) }`, map[string]any{"id": made.RuntimeID}, &removal); refused != "" {
		t.Fatal(refused)
	}

	services.givesBack(removal)

	var last struct{ Operation string }
	if c.ask(`query ($id: String!) { result: runtimeOperationStatus(id: $id) { operation } }`, map[string]any{"id": removal}, &last); last.Operation != "Deprovision" {
		t.Errorf("it was removed by a %s", last.Operation)
	}
}

// keepsSecrets finds secrets that the status gives away.
func (c clusters) keepsSecrets(runtimeID string) {
	c.Helper()

	status := c.status(runtimeID, "kymaConfig { version components { component configuration { key value secret } } }")
	values := map[string]string{}

	for _, component := range status.RuntimeConfiguration.KymaConfig.Components {
		for _, entry := range component.Configuration {
			values[component.Component+"."+entry.Key] = entry.Value
		}
	}

	if diff := cmp.Diff(map[string]string{"monitoring.retention": "2d", "monitoring.adminPassword": ""}, values); diff != "" {
		c.Errorf("secrets are told as empty, -want +got:\n%s", diff)
	}
}

// rollsBack takes the last upgrade back, once.
func (c clusters) rollsBack(runtimeID string) {
	c.Helper()

	const rollBack = `mutation ($id: String!) { result: rollBackUpgradeOperation(id: $id) {
		lastOperationStatus { id operation state } runtimeConfiguration { kymaConfig { version } } } }`

	var answer struct {
		runtimeStatus

		LastOperationStatus struct{ ID, Operation string }
	}
	if refused := c.ask(rollBack, map[string]any{"id": runtimeID}, &answer); refused != "" {
		c.Fatal(refused)
	}

	if last := answer.LastOperationStatus; last.Operation != "Upgrade" || answer.RuntimeConfiguration.KymaConfig.Version != "1.1.0" {
		c.Errorf("rolled back as %+v, want an Upgrade of a runtime that is told as it still is", answer)
	}

	c.succeeded(answer.LastOperationStatus.ID)

	if refused := c.ask(rollBack, map[string]any{"id": runtimeID}, &answer); !strings.Contains(refused, "there is nothing to roll back") {
		c.Errorf("a second time it gives %q", refused)
	}
}

func TestRuntimesWithKyma(t *testing.T) {
	t.Parallel()

	memory, err := fakegarden.Open(t.Context(), fakegarden.Options{
		Dir: filepath.Join(t.TempDir(), "garden"), ClusterCreation: 200 * time.Millisecond, Log: logging.Discard(),
	})
	if err != nil {
		t.Fatal(err)
	}

	run(t, memory.Run)
	kymaStory(t, memory.Client(), func(clusters, string) {})
}
