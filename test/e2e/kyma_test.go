package e2e

import (
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	provisioner "github.com/environment-broker/environment-broker/provisioner/service"
	"github.com/environment-broker/environment-broker/test/harness"
)

// component returns a component for a Kyma order. values contains alternating keys and values. If a key ends with Password, its
// value is secret.
func component(name, namespace string, values ...string) map[string]any {
	entries := []any{}
	for i := 0; i < len(values); i += 2 {
		entries = append(entries, map[string]any{
			"key": values[i], "value": values[i+1], "secret": strings.HasSuffix(values[i], "Password"),
		})
	}

	return map[string]any{"component": name, "namespace": namespace, "configuration": entries}
}

// kymaOf returns a Kyma order with the given components and the runtime agent.
func kymaOf(version string, components ...map[string]any) map[string]any {
	return map[string]any{"version": version, "components": append(components, component("compass-runtime-agent", "compass-system"))}
}

const upgradeRuntime = `mutation ($id: String!, $config: UpgradeRuntimeInput!) { result: upgradeRuntime(id: $id, config: $config) { id runtimeID state } }`

// installed is the Kyma installation of a runtime: the version that the Provisioner reports, and the versions and values in the
// cluster.
type installed struct {
	Reported, Essentials, Retention, Password string
}

func (c clusters) installed(runtimeID string) installed {
	c.Helper()

	found := installed{Reported: c.status(runtimeID, "kymaConfig { version }").RuntimeConfiguration.KymaConfig.Version}
	core := c.runtimeClient(runtimeID).CoreV1()

	essentials, err := core.ConfigMaps("kyma-system").Get(c.Context(), "cluster-essentials", metav1.GetOptions{})
	if err != nil {
		c.Fatal(err)
	}

	found.Essentials = essentials.Data["release"]

	monitoring, err := core.ConfigMaps("kyma-system").Get(c.Context(), "monitoring", metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return found
	}

	if err != nil {
		c.Fatal(err)
	}

	admin, err := core.Secrets("kyma-system").Get(c.Context(), "monitoring-admin", metav1.GetOptions{})
	if err != nil {
		c.Fatal(err)
	}

	found.Retention, found.Password = monitoring.Data["retention"], string(admin.Data["password"])
	if found.Password == "" {
		found.Password = admin.StringData["password"] // a simulated runtime stores StringData unchanged
	}

	return found
}

func (c clusters) wantInstalled(reason string, want, got installed) {
	c.Helper()

	if diff := cmp.Diff(want, got); diff != "" {
		c.Errorf("%s, -want +got:\n%s", reason, diff)
	}
}

// testKyma provisions, upgrades, rolls back, hibernates and removes a runtime with Kyma. It calls whenCreated once the runtime
// exists.
func testKyma(t *testing.T, garden project, whenCreated func(c clusters, runtimeID string), configure ...func(*provisioner.Config)) {
	t.Helper()

	c := newClusters(t, garden, func(config *provisioner.Config) {
		config.Kyma.ReleasesPath = filepath.Join("..", "..", "resources", "releases")

		for _, apply := range configure {
			apply(config)
		}
	})
	monitoring := component("monitoring", "kyma-system", "retention", "2d", "adminPassword", "hush")
	order := func(kyma map[string]any) map[string]any {
		return map[string]any{"config": map[string]any{
			"runtimeInput": map[string]any{"name": "mine"}, "kymaConfig": kyma,
			"clusterConfig": map[string]any{"gardenerConfig": clusterOf("gcp"), "administrators": []string{"jane@example.com"}},
		}}
	}

	for want, kyma := range map[string]map[string]any{
		`there is no release "0.9.0"; the releases are 1.0.0, 1.1.0`: kymaOf("0.9.0"),
		`has no component "nothing"`:                                 kymaOf("1.0.0", component("nothing", "kyma-system")),
		"needs a value for \"adminPassword\"":                        kymaOf("1.0.0", component("monitoring", "kyma-system")),
	} {
		if got := c.send(provisionRuntime, order(kyma), &operationStatus{}); !strings.Contains(got, want) {
			t.Errorf("an invalid order: %q, want %q", got, want)
		}
	}

	created := c.mustSend(provisionRuntime, order(kymaOf("1.0.0", monitoring)))
	c.wantSucceeded(created.ID)
	whenCreated(c, created.RuntimeID)

	poolUnchanged := c.addPoolManually("c-gcp")

	first := installed{Reported: "1.0.0", Essentials: "1.0.0", Retention: "2d", Password: "hush"}
	c.wantInstalled("the ordered components are installed", first, c.installed(created.RuntimeID))
	c.checkNoSecrets(created.RuntimeID)

	upgrade := c.mustSend(upgradeRuntime, map[string]any{"id": created.RuntimeID, "config": map[string]any{
		"kymaConfig": kymaOf("1.1.0", component("monitoring", "kyma-system", "retention", "9d")),
	}})
	c.wantSucceeded(upgrade.ID)
	poolUnchanged("an upgrade of Kyma")
	c.wantInstalled("an upgrade is merged with the order", installed{Reported: "1.1.0", Essentials: "1.1.0", Retention: "9d", Password: "hush"},
		c.installed(created.RuntimeID))

	c.rollBackTwice(created.RuntimeID)
	poolUnchanged("a rollback of Kyma")
	c.wantInstalled("the previous installation is restored", first, c.installed(created.RuntimeID))

	withoutMonitoring := c.mustSend(upgradeRuntime, map[string]any{"id": created.RuntimeID, "config": map[string]any{
		"kymaConfig": kymaOf("1.1.0"), "clusterConfig": map[string]any{"kubernetesVersion": "1.35.4"},
	}})
	c.wantSucceeded(withoutMonitoring.ID)

	if got := c.status(created.RuntimeID, "clusterConfig { kubernetesVersion }").RuntimeConfiguration.ClusterConfig.KubernetesVersion; got != "1.35.4" {
		t.Errorf("the cluster has Kubernetes %s", got)
	}

	c.wantInstalled("components that are no longer ordered are removed", installed{Reported: "1.1.0", Essentials: "1.1.0"}, c.installed(created.RuntimeID))

	hibernation := c.mustSend(`mutation ($id: String!) { result: hibernateRuntime(id: $id) { id } }`, map[string]any{"id": created.RuntimeID})
	c.wantSucceeded(hibernation.ID)

	refused := c.send(upgradeRuntime, map[string]any{"id": created.RuntimeID, "config": map[string]any{"kymaConfig": kymaOf("1.0.0")}}, &operationStatus{})
	if !strings.Contains(refused, "is hibernated: wake it up first") {
		t.Errorf("upgrading a hibernated runtime: %q", refused)
	}

	wakeUp := c.mustSend(`mutation ($id: String!) { result: wakeUpRuntime(id: $id) { id } }`, map[string]any{"id": created.RuntimeID})
	c.wantSucceeded(wakeUp.ID)

	services := c.startServiceCatalog(created.RuntimeID)

	var removal string
	if refused := c.send(`mutation ($id: String!) { result: deprovisionRuntime(id: $id) }`, map[string]any{"id": created.RuntimeID}, &removal); refused != "" {
		t.Fatal(refused)
	}

	services.checkRemoval(removal)

	var last struct{ Operation string }
	if c.send(`query ($id: String!) { result: runtimeOperationStatus(id: $id) { operation } }`, map[string]any{"id": removal}, &last); last.Operation != "Deprovision" {
		t.Errorf("the last operation is %s, want Deprovision", last.Operation)
	}
}

// checkNoSecrets checks that the status of a runtime contains no secret values.
func (c clusters) checkNoSecrets(runtimeID string) {
	c.Helper()

	status := c.status(runtimeID, "kymaConfig { version components { component configuration { key value secret } } }")
	values := map[string]string{}

	for _, component := range status.RuntimeConfiguration.KymaConfig.Components {
		for _, entry := range component.Configuration {
			values[component.Component+"."+entry.Key] = entry.Value
		}
	}

	if diff := cmp.Diff(map[string]string{"monitoring.retention": "2d", "monitoring.adminPassword": ""}, values); diff != "" {
		c.Errorf("secrets in the status, -want +got:\n%s", diff)
	}
}

// rollBackTwice rolls back the last upgrade, and then tries to roll back again, which the Provisioner must reject.
func (c clusters) rollBackTwice(runtimeID string) {
	c.Helper()

	const rollBack = `mutation ($id: String!) { result: rollBackUpgradeOperation(id: $id) {
		lastOperationStatus { id operation state } runtimeConfiguration { kymaConfig { version } } } }`

	var answer struct {
		runtimeStatus

		LastOperationStatus struct{ ID, Operation string }
	}
	if refused := c.send(rollBack, map[string]any{"id": runtimeID}, &answer); refused != "" {
		c.Fatal(refused)
	}

	if last := answer.LastOperationStatus; last.Operation != "Upgrade" || answer.RuntimeConfiguration.KymaConfig.Version != "1.1.0" {
		c.Errorf("the rollback returned %+v, want an operation Upgrade and the unchanged version", answer)
	}

	c.wantSucceeded(answer.LastOperationStatus.ID)

	if refused := c.send(rollBack, map[string]any{"id": runtimeID}, &answer); !strings.Contains(refused, "there is nothing to roll back") {
		c.Errorf("rolling back again: %q", refused)
	}
}

func TestRuntimesWithKyma(t *testing.T) {
	t.Parallel()

	testKyma(t, projectOf(harness.StartGarden(t, 200*time.Millisecond)), func(clusters, string) {})
}
