package e2e

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/environment-broker/environment-broker/internal/logging"
	"github.com/environment-broker/environment-broker/provisioner/clusteraccess"
	provisioner "github.com/environment-broker/environment-broker/provisioner/service"
	"github.com/environment-broker/environment-broker/provisioner/shoot"
	"github.com/environment-broker/environment-broker/test/harness"
)

// clusters is a client for a Provisioner's GraphQL API and for its garden.
type clusters struct {
	*testing.T

	url    string
	garden project
}

// newClusters runs a Provisioner with the given garden until the test ends.
func newClusters(t *testing.T, garden project, configure ...func(*provisioner.Config)) clusters {
	t.Helper()

	settings := harness.ProvisionerSettings(harness.SQLite(t, "provisioner"))
	settings.Gardener.Project = garden.name

	for _, each := range configure {
		each(&settings)
	}

	url, _ := harness.StartProvisioner(t, garden, settings, logging.Discard())

	return clusters{T: t, url: url, garden: garden}
}

// operationStatus is an operation in the Provisioner's responses.
type operationStatus struct {
	ID        string
	RuntimeID string
	State     string
	Message   string
	LastError struct{ ErrMessage, Reason string }
}

// send sends a request and decodes the `result` field of the response into result. It returns the message of a GraphQL error, or
// "" if there is none.
func (c clusters) send(query string, variables map[string]any, result any) string {
	c.Helper()

	refused, err := caller{url: c.url, tenant: "acme"}.send(c.Context(), query, variables, result)
	if err != nil {
		c.Fatal(err)
	}

	if refused != nil {
		return refused.Message
	}

	return ""
}

// mustSend sends a request that must succeed, and returns the operation in its result.
func (c clusters) mustSend(query string, variables map[string]any) operationStatus {
	c.Helper()

	var accepted operationStatus
	if refused := c.send(query, variables, &accepted); refused != "" {
		c.Fatal(refused)
	}

	return accepted
}

// wantSucceeded waits until the operation has ended, and fails the test unless it succeeded.
func (c clusters) wantSucceeded(operationID string) {
	c.Helper()

	var now operationStatus

	harness.Until(c, "operation "+operationID+" to succeed", func() bool {
		if now = c.operation(operationID); now.State == "Failed" {
			c.Fatalf("operation %s is %+v", operationID, now)
		}

		return now.State == "Succeeded"
	})
}

// waitForMessage waits until the message of an operation in progress contains want.
func (c clusters) waitForMessage(operationID, want string) {
	c.Helper()

	harness.Until(c, fmt.Sprintf("the message of operation %s to contain %q", operationID, want), func() bool {
		now := c.operation(operationID)
		found := strings.Contains(now.Message, want)

		if !found && now.State != "InProgress" && now.State != "Pending" {
			c.Fatalf("operation %s is %+v, want a message with %q", operationID, now, want)
		}

		return found
	})
}

func (c clusters) operation(id string) operationStatus {
	c.Helper()

	return c.mustSend(`query ($id: String!) { result: runtimeOperationStatus(id: $id) { id state message lastError { errMessage reason } } }`,
		map[string]any{"id": id})
}

const (
	provisionRuntime = `mutation ($config: ProvisionRuntimeInput!) { result: provisionRuntime(config: $config) { id runtimeID state } }`
	upgradeShoot     = `mutation ($id: String!, $config: UpgradeShootInput!) { result: upgradeShoot(id: $id, config: $config) { id runtimeID state } }`
)

func (c clusters) shoot(name string) *gardencorev1beta1.Shoot {
	c.Helper()

	found := &gardencorev1beta1.Shoot{}
	if err := c.garden.Get(context.Background(), client.ObjectKey{Namespace: c.garden.Namespace(), Name: name}, found); err != nil {
		c.Fatal(err)
	}

	return found
}

// configMaps returns the ConfigMaps of the runtime's Shoot.
func (c clusters) configMaps(runtimeID string) []corev1.ConfigMap {
	c.Helper()

	found := &corev1.ConfigMapList{}
	if err := c.garden.List(context.Background(), found, client.InNamespace(c.garden.Namespace()),
		client.MatchingLabels{shoot.LabelRuntimeID: runtimeID}); err != nil {
		c.Fatal(err)
	}

	return found.Items
}

type runtimeStatus struct {
	RuntimeConfiguration struct {
		Kubeconfig    string
		ClusterConfig struct {
			KubernetesVersion string
			AutoScalerMax     int
			OIDCConfig        struct{ IssuerURL string } `json:"oidcConfig"`
		}
		KymaConfig *struct {
			Version    string
			Components []struct {
				Component     string
				Configuration []struct {
					Key, Value string
					Secret     bool
				}
			}
		}
	}
}

func (c clusters) status(runtimeID, fields string) runtimeStatus {
	c.Helper()

	var status runtimeStatus
	if refused := c.send(`query ($id: String!) { result: runtimeStatus(id: $id) { runtimeConfiguration { `+fields+` } } }`,
		map[string]any{"id": runtimeID}, &status); refused != "" {
		c.Fatal(refused)
	}

	return status
}

func (c clusters) runtimeClient(runtimeID string) *kubernetes.Clientset {
	c.Helper()

	return harness.RuntimeClient(c, []byte(c.status(runtimeID, "kubeconfig").RuntimeConfiguration.Kubeconfig))
}

// administrators returns the users with cluster-admin rights in the runtime.
func (c clusters) administrators(runtimeID string) []string {
	c.Helper()

	binding, err := c.runtimeClient(runtimeID).RbacV1().ClusterRoleBindings().Get(c.Context(), clusteraccess.AdministratorsBinding, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}

	if err != nil {
		c.Fatal(err)
	}

	var names []string

	for _, subject := range binding.Subjects {
		if subject.Kind == rbacv1.UserKind {
			names = append(names, subject.Name)
		}
	}

	return names
}

func oidc(issuer string) map[string]any {
	return map[string]any{
		"clientID": "client", "issuerURL": issuer, "usernameClaim": "sub", "usernamePrefix": "-", "groupsClaim": "groups", "signingAlgs": []string{"RS256"},
	}
}

// clusterOf returns a complete order for a cluster on the given cloud provider.
func clusterOf(provider string) map[string]any {
	order := map[string]any{
		"name": "c-" + provider[:3], "provider": provider, "targetSecret": provider, "kubernetesVersion": "1.34.5",
		"workerCidr": "10.250.0.0/16", "podsCidr": "10.96.0.0/13", "servicesCidr": "10.104.0.0/13",
		"autoScalerMin": 1, "autoScalerMax": 3, "maxSurge": 1, "maxUnavailable": 0, "purpose": "evaluation",
		"oidcConfig": oidc("https://first.example.com"),
	}

	switch provider {
	case "aws":
		order["region"], order["machineType"], order["diskType"], order["volumeSizeGB"] = "eu-central-1", "m6i.large", "gp3", 50
		order["controlPlaneFailureTolerance"], order["euAccess"] = "node", true
		order["providerSpecificConfig"] = map[string]any{"awsConfig": map[string]any{
			"vpcCidr": "10.250.0.0/16", "enableIMDSv2": true, "awsZones": []any{map[string]any{
				"name": "eu-central-1a", "workerCidr": "10.250.0.0/19", "publicCidr": "10.250.32.0/20", "internalCidr": "10.250.48.0/20",
			}},
		}}
	case "azure":
		order["region"], order["machineType"], order["diskType"], order["volumeSizeGB"] = "westeurope", "Standard_D4s_v5", "Standard_LRS", 50
		order["providerSpecificConfig"] = map[string]any{"azureConfig": map[string]any{
			"vnetCidr": "10.250.0.0/16", "azureZones": []any{map[string]any{"name": 1, "cidr": "10.250.0.0/19"}},
		}}
	case "gcp":
		order["region"], order["machineType"] = "europe-west3", "n2-standard-4"
		order["providerSpecificConfig"] = map[string]any{"gcpConfig": map[string]any{"zones": []string{"europe-west3-a"}}}
	case "openstack":
		order["region"], order["machineType"] = "eu-de-1", "g_c4_m16"
		order["exposureClassName"] = "converged-cloud-internet"
		order["providerSpecificConfig"] = map[string]any{"openStackConfig": map[string]any{
			"zones": []string{"eu-de-1a"}, "cloudProfileName": "converged-cloud-cp", "floatingPoolName": "FloatingIP-external-cp-kyma",
			"loadBalancerProvider": "f5",
		}}
	}

	return order
}

// testRuntimeChanges orders, changes and removes a cluster on each cloud provider.
func testRuntimeChanges(t *testing.T, garden project) {
	t.Helper()

	shared := newClusters(t, garden)

	for _, provider := range []string{"aws", "azure", "gcp", "openstack"} {
		t.Run(provider, func(t *testing.T) {
			c := clusters{T: t, url: shared.url, garden: shared.garden}
			order := clusterOf(provider)
			name, _ := order["name"].(string)

			created := c.mustSend(provisionRuntime, map[string]any{"config": map[string]any{
				"runtimeInput":  map[string]any{"name": name},
				"clusterConfig": map[string]any{"gardenerConfig": order, "administrators": []string{"jane@example.com", "joe@example.com"}},
			}})
			c.wantSucceeded(created.ID)

			if diff := cmp.Diff([]string{"jane@example.com", "joe@example.com"}, c.administrators(created.RuntimeID)); diff != "" {
				t.Errorf("administrators of the new runtime, -want +got:\n%s", diff)
			}

			poolUnchanged := c.addPoolManually(name)

			c.checkUpgrade(created.RuntimeID, name)
			poolUnchanged("an upgrade")
			c.checkSecondPool(created.RuntimeID, name)
			poolUnchanged("changes of the other pools")
			c.checkForeignFields(created.RuntimeID, name)
			c.checkRejections(created.RuntimeID)
			c.checkHibernation(created.RuntimeID, name, poolUnchanged)

			var removal string
			if refused := c.send(`mutation ($id: String!) { result: deprovisionRuntime(id: $id) }`,
				map[string]any{"id": created.RuntimeID}, &removal); refused != "" {
				t.Fatal(refused)
			}

			c.wantSucceeded(removal)

			if left := c.configMaps(created.RuntimeID); len(left) != 0 {
				t.Errorf("%d ConfigMaps remain after the removal of the runtime", len(left))
			}
		})
	}
}

// checkUpgrade changes every setting that is independent of the cloud provider.
func (c clusters) checkUpgrade(runtimeID, name string) {
	c.Helper()

	before := c.shoot(name)

	harness.InjectClusterFaults(c.T, c.garden, harness.StuckClusters())

	upgrade := c.mustSend(upgradeShoot, map[string]any{"id": runtimeID, "config": map[string]any{
		"gardenerConfig": map[string]any{
			"kubernetesVersion": "1.34.7", "autoScalerMax": 5, "oidcConfig": oidc("https://second.example.com"), "purpose": "production",
		},
		"administrators": []string{"joe@example.com", "ann@example.com"},
	}})

	if first := c.status(runtimeID, "clusterConfig { autoScalerMax }"); first.RuntimeConfiguration.ClusterConfig.AutoScalerMax == 5 {
		c.Error("the status shows the change before the upgrade has ended")
	}

	harness.InjectClusterFaults(c.T, c.garden, nil)
	c.wantSucceeded(upgrade.ID)

	after := c.shoot(name)
	if after.Spec.Kubernetes.Version != "1.34.7" || after.Spec.Provider.Workers[0].Maximum != 5 || *after.Spec.Purpose != "production" {
		c.Errorf("the Shoot has Kubernetes %s, %d machines, purpose %s", after.Spec.Kubernetes.Version, after.Spec.Provider.Workers[0].Maximum, *after.Spec.Purpose)
	}

	if after.Status.ObservedGeneration != after.Generation || after.Generation == before.Generation {
		c.Errorf("Gardener observed generation %d of %d, and %d before the upgrade", after.Status.ObservedGeneration, after.Generation, before.Generation)
	}

	configMaps := c.configMaps(runtimeID)
	if len(configMaps) != 1 || configMaps[0].Name != after.Spec.Kubernetes.KubeAPIServer.StructuredAuthentication.ConfigMapName ||
		!strings.Contains(configMaps[0].Data["config.yaml"], "https://second.example.com") {
		c.Errorf("the ConfigMaps of the Shoot are %v", configMaps)
	}

	if diff := cmp.Diff([]string{"joe@example.com", "ann@example.com"}, c.administrators(runtimeID)); diff != "" {
		c.Errorf("administrators after the upgrade, -want +got:\n%s", diff)
	}

	config := c.status(runtimeID, "clusterConfig { kubernetesVersion autoScalerMax oidcConfig { issuerURL } }").RuntimeConfiguration.ClusterConfig
	if config.AutoScalerMax != 5 || config.KubernetesVersion != "1.34.7" || config.OIDCConfig.IssuerURL != "https://second.example.com" {
		c.Errorf("the status is %+v", config)
	}
}

// checkForeignFields changes the Shoot directly in Gardener and then upgrades the cluster. The upgrade must keep the values of
// fields that the order does not set.
func (c clusters) checkForeignFields(runtimeID, name string) {
	c.Helper()

	edited := c.shoot(name)
	before := edited.DeepCopy()
	metav1.SetMetaDataAnnotation(&edited.ObjectMeta, "example.com/note", "by hand")
	edited.Spec.Kubernetes.KubeAPIServer.EventTTL = &metav1.Duration{Duration: 3 * time.Hour}
	edited.Spec.Hibernation = &gardencorev1beta1.Hibernation{Schedules: []gardencorev1beta1.HibernationSchedule{{Start: new("0 20 * * *")}}}
	edited.Spec.Extensions = append(edited.Spec.Extensions, gardencorev1beta1.Extension{
		Type: shoot.ExtensionAuditLog, ProviderConfig: &runtime.RawExtension{Raw: []byte(`{"kind":"Own"}`)},
	})
	edited.Spec.Provider.ControlPlaneConfig.Raw = bytes.Replace(edited.Spec.Provider.ControlPlaneConfig.Raw, []byte("{"), []byte(`{"byHand":true,`), 1)
	edited.Spec.Maintenance.TimeWindow = &gardencorev1beta1.MaintenanceTimeWindow{Begin: "010000+0000", End: "020000+0000"}

	if err := c.garden.Patch(context.Background(), edited, client.MergeFrom(before), client.FieldOwner("somebody")); err != nil {
		c.Fatal(err)
	}

	c.wantSucceeded(c.mustSend(upgradeShoot, map[string]any{"id": runtimeID, "config": map[string]any{
		"gardenerConfig": map[string]any{"autoScalerMax": 4},
	}}).ID)

	after := c.shoot(name)
	if after.Spec.Provider.Workers[0].Maximum != 4 {
		c.Errorf("after the upgrade the maximum is %d machines", after.Spec.Provider.Workers[0].Maximum)
	}

	for field, values := range map[string][2]any{
		"annotation":          {edited.Annotations["example.com/note"], after.Annotations["example.com/note"]},
		"API server":          {edited.Spec.Kubernetes.KubeAPIServer, after.Spec.Kubernetes.KubeAPIServer},
		"hibernation":         {edited.Spec.Hibernation, after.Spec.Hibernation},
		"extensions":          {edited.Spec.Extensions, after.Spec.Extensions},
		"maintenance":         {edited.Spec.Maintenance, after.Spec.Maintenance},
		"access restrictions": {edited.Spec.AccessRestrictions, after.Spec.AccessRestrictions},
		"control plane":       {edited.Spec.ControlPlane, after.Spec.ControlPlane},
		"its configuration":   {string(edited.Spec.Provider.ControlPlaneConfig.Raw), string(after.Spec.Provider.ControlPlaneConfig.Raw)},
	} {
		if diff := cmp.Diff(values[0], values[1]); diff != "" {
			c.Errorf("%s, -before the upgrade +after:\n%s", field, diff)
		}
	}
}

// checkSecondPool adds a second worker pool and removes it again.
func (c clusters) checkSecondPool(runtimeID, name string) {
	c.Helper()

	upgrade := func(pools ...any) map[string]gardencorev1beta1.Worker {
		c.wantSucceeded(c.mustSend(upgradeShoot, map[string]any{"id": runtimeID, "config": map[string]any{
			"gardenerConfig": map[string]any{"additionalWorkers": append([]any{}, pools...)},
		}}).ID)

		return c.pools(name)
	}

	before := c.pools(name)
	first := before[shoot.WorkerPool]

	withSecond := upgrade(map[string]any{
		"name": "batch", "machineType": first.Machine.Type, "autoScalerMin": 0, "autoScalerMax": 2, "maxSurge": 1, "maxUnavailable": 0,
	})
	if second := withSecond["batch"]; len(withSecond) != len(before)+1 || second.Maximum != 2 || !cmp.Equal(second.Zones, first.Zones) {
		c.Errorf("with a second pool the pools are %+v", withSecond)
	}

	if diff := cmp.Diff(before, upgrade()); diff != "" {
		c.Errorf("pools, -before +without the second one:\n%s", diff)
	}
}

// checkHibernation hibernates the cluster, changes it during hibernation, and wakes it up.
func (c clusters) checkHibernation(runtimeID, name string, poolUnchanged func(after string)) {
	c.Helper()

	order := func(mutation string) {
		c.Helper()
		c.wantSucceeded(c.mustSend(`mutation ($id: String!) { result: `+mutation+`(id: $id) { id } }`, map[string]any{"id": runtimeID}).ID)
	}
	hibernated := func() bool {
		var status struct{ HibernationStatus struct{ Hibernated bool } }
		if refused := c.send(`query ($id: String!) { result: runtimeStatus(id: $id) { hibernationStatus { hibernated } } }`,
			map[string]any{"id": runtimeID}, &status); refused != "" {
			c.Fatal(refused)
		}

		return status.HibernationStatus.Hibernated
	}

	order("hibernateRuntime")

	if !hibernated() {
		c.Error("the cluster is not hibernated")
	}

	poolUnchanged("hibernation")

	c.wantSucceeded(c.mustSend(upgradeShoot, map[string]any{"id": runtimeID, "config": map[string]any{
		"gardenerConfig": map[string]any{"autoScalerMax": 6}, "administrators": []string{"eve@example.com"},
	}}).ID)

	if maximum := c.shoot(name).Spec.Provider.Workers[0].Maximum; maximum != 6 || !hibernated() {
		c.Errorf("after an upgrade the hibernated cluster has %d machines; hibernated: %t", maximum, hibernated())
	}

	order("wakeUpRuntime")

	if hibernated() {
		c.Error("the cluster is still hibernated")
	}

	poolUnchanged("an upgrade during hibernation, and waking up")

	if diff := cmp.Diff([]string{"eve@example.com"}, c.administrators(runtimeID)); diff != "" {
		c.Errorf("administrators after waking up, -want +got:\n%s", diff)
	}
}

// checkRejections checks that the Provisioner rejects invalid changes.
func (c clusters) checkRejections(runtimeID string) {
	c.Helper()

	for _, refusal := range []struct {
		config map[string]any
		want   string
	}{
		{map[string]any{"kubernetesVersion": "1.34.5"}, "kubernetesVersion must not be lower than the current version 1.34.7"},
		{map[string]any{"kubernetesVersion": "1.36.1"}, "kubernetesVersion must not skip a minor version"},
		{map[string]any{"machineType": ""}, "machineType must not be empty"},
		{map[string]any{"autoScalerMax": 0}, "autoScalerMax must be between 1"},
	} {
		var accepted operationStatus

		got := c.send(upgradeShoot, map[string]any{"id": runtimeID, "config": map[string]any{"gardenerConfig": refusal.config}}, &accepted)
		if !strings.Contains(got, refusal.want) {
			c.Errorf("%v returned %q, want %q", refusal.config, got, refusal.want)
		}
	}
}

func TestRuntimeChanges(t *testing.T) {
	t.Parallel()

	testRuntimeChanges(t, projectOf(harness.StartGarden(t, 200*time.Millisecond)))
}
