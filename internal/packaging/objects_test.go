package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/yaml"

	"github.com/environment-broker/environment-broker/internal/program"
)

// stopLimit is the time that a service needs to stop, after APP_SHUTDOWN_DELAY (docs/operator/running.md).
const stopLimit = 25 * time.Second

func TestPods(t *testing.T) {
	objects := mustRender(t, "production", "broker: {shutdownDelaySeconds: 20}")

	for service, deployment := range deployments(t, objects) {
		pod := deployment.Spec.Template.Spec
		container := pod.Containers[0]

		delay, err := time.ParseDuration(find[corev1.ConfigMap](t, objects, "ConfigMap", deployment.Name).Data[program.Prefix+"SHUTDOWN_DELAY"])
		if err != nil {
			t.Fatal(err)
		}

		if grace := time.Duration(*pod.TerminationGracePeriodSeconds) * time.Second; grace < delay+stopLimit {
			t.Errorf("%s: Kubernetes kills a Pod after %s, but it needs %s to stop", service, grace, delay+stopLimit)
		}

		if ready := container.ReadinessProbe; time.Duration(ready.PeriodSeconds*ready.FailureThreshold)*time.Second > delay {
			t.Errorf("%s: a Pod stops serving after %s, before its probe has failed %d times", service, delay, ready.FailureThreshold)
		}

		if startup := container.StartupProbe; startup.HTTPGet.Path != "/healthz" || startup.PeriodSeconds*startup.FailureThreshold < 60 {
			t.Errorf("%s: the startup probe is %+v", service, startup)
		}

		if container.LivenessProbe.HTTPGet.Path != "/healthz" || container.ReadinessProbe.HTTPGet.Path != "/readyz" {
			t.Errorf("%s: the probes are %+v and %+v: a Pod must not restart because its database is unreachable", service, container.LivenessProbe, container.ReadinessProbe)
		}

		if got := pod.AutomountServiceAccountToken; *got != (service == "bundler") {
			t.Errorf("%s: mounts the token: %t", service, *got)
		}

		for _, constraint := range pod.TopologySpreadConstraints {
			if diff := cmp.Diff(deployment.Spec.Selector, constraint.LabelSelector); diff != "" {
				t.Errorf("%s: Pods are spread by other labels: -deployment +constraint\n%s", service, diff)
			}
		}

		if len(pod.TopologySpreadConstraints) != 2 {
			t.Errorf("%s: %d topology spread constraints, want zones and nodes", service, len(pod.TopologySpreadConstraints))
		}

		for label, value := range deployment.Spec.Selector.MatchLabels {
			if deployment.Spec.Template.Labels[label] != value {
				t.Errorf("%s: the Pods lack the label %s of the selector", service, label)
			}
		}

		if container.Command[0] != "/usr/local/bin/"+service {
			t.Errorf("%s: the command is %v", service, container.Command)
		}
	}
}

// TestNoSecrets checks that the chart never creates Secrets, because their content would then be stored in the values of the
// release.
func TestNoSecrets(t *testing.T) {
	for _, name := range []string{"production", "evaluation"} {
		if found := names(mustRender(t, name, ""), "Secret"); len(found) > 0 {
			t.Errorf("%s: the chart creates the Secrets %v", name, found)
		}
	}
}

// TestChangesReplacePods checks that the Pods of a service change with its variables, and only with them.
func TestChangesReplacePods(t *testing.T) {
	before := deployments(t, mustRender(t, "production", ""))
	after := deployments(t, mustRender(t, "production", "broker: {config: {APP_OSB_STRICT: true}}"))

	for service := range before {
		same := cmp.Equal(before[service].Spec.Template, after[service].Spec.Template)
		if same == (service == "broker") {
			t.Errorf("after a change of a variable of the broker, the Pods of %s are the same: %t", service, same)
		}
	}
}

func TestDisruptionBudgets(t *testing.T) {
	objects := mustRender(t, "production", "provisioner: {replicas: 1}")

	if diff := cmp.Diff([]string{prefix + "-broker", prefix + "-bundler"}, names(objects, "PodDisruptionBudget")); diff != "" {
		t.Errorf("a budget for one Pod blocks the drain of its node: -want +got\n%s", diff)
	}

	budget := find[policyv1.PodDisruptionBudget](t, objects, "PodDisruptionBudget", prefix+"-broker").Spec
	if diff := cmp.Diff(deployments(t, objects)["broker"].Spec.Selector, budget.Selector); diff != "" || budget.MaxUnavailable.IntValue() != 1 {
		t.Errorf("the budget permits %v evictions of other Pods: -deployment +budget\n%s", budget.MaxUnavailable, diff)
	}
}

// nameOfValues is each name in testdata/names.yaml.
const nameOfValues = "zzz"

// TestNamesLikeNumbers checks that names remain strings if YAML would read them as other types. The objects must be the same as those
// with nameOfValues, except for the names.
func TestNamesLikeNumbers(t *testing.T) {
	words := renderNames(t, nameOfValues)

	for _, name := range []string{"123", "1e3", "0x10", "true", "null"} {
		if diff := cmp.Diff(strings.ReplaceAll(words, nameOfValues, name), renderNames(t, name)); diff != "" {
			t.Errorf("names %s: -want +got\n%s", name, diff)
		}
	}
}

// renderNames renders the chart with the given name in each place of testdata/names.yaml, as release and as namespace. It returns the
// objects as JSON, without the hash of the variables.
func renderNames(t *testing.T, name string) string {
	t.Helper()

	files, err := chartFiles(os.DirFS(resourcesFolder))
	if err != nil {
		t.Fatal(err)
	}

	values, err := os.ReadFile(filepath.Join("testdata", "names.yaml"))
	if err != nil {
		t.Fatal(err)
	}

	objects, err := renderChart(files, types.NamespacedName{Namespace: name, Name: name},
		merged(t, example(t, "production"), strings.ReplaceAll(string(values), nameOfValues, name)))
	if err != nil {
		t.Fatal(err)
	}

	for _, object := range objects {
		unstructured.RemoveNestedField(object.Object, "spec", "template", "metadata", "annotations", "checksum/variables")
	}

	text, err := json.MarshalIndent(objects, "", "  ")
	if err != nil {
		t.Fatal(err)
	}

	return string(text)
}

// TestSQLite checks that the data is in a volume that only one Pod uses at a time and that outlives the release.
func TestSQLite(t *testing.T) {
	objects := mustRender(t, "evaluation", "")
	broker := deployments(t, objects)["broker"]

	path := find[corev1.ConfigMap](t, objects, "ConfigMap", broker.Name).Data["APP_DATABASE_PATH"]
	mounts := broker.Spec.Template.Spec.Containers[0].VolumeMounts

	if !slices.ContainsFunc(mounts, func(mount corev1.VolumeMount) bool {
		return mount.Name == "data" && mount.MountPath == filepath.Dir(path)
	}) {
		t.Errorf("the database %s is in none of the volumes %+v", path, mounts)
	}

	claim := find[corev1.PersistentVolumeClaim](t, objects, "PersistentVolumeClaim", prefix+"-broker")
	if claim.Annotations["helm.sh/resource-policy"] != "keep" {
		t.Error("`helm uninstall` removes the database")
	}

	if broker.Spec.Strategy.Type != appsv1.RecreateDeploymentStrategyType {
		t.Errorf("the strategy is %s: two Pods would have the database at the same time", broker.Spec.Strategy.Type)
	}

	for _, storage := range []string{"{accessMode: ReadWriteMany}", "{ephemeral: true}"} {
		objects := mustRender(t, "evaluation", "broker: {storage: "+storage+"}")
		if got := deployments(t, objects)["broker"].Spec.Strategy.Type; got != appsv1.RecreateDeploymentStrategyType {
			t.Errorf("storage %s: the strategy is %s: a new Pod would start while the former one serves its own database or has locked the file", storage, got)
		}
	}

	ephemeral := mustRender(t, "evaluation", "{broker: {storage: {ephemeral: true}}, provisioner: {storage: {existingClaim: mine}}}")
	if claims := names(ephemeral, "PersistentVolumeClaim"); len(claims) > 0 {
		t.Errorf("the chart creates the claims %v, want an emptyDir and a claim that exists", claims)
	}

	for service, want := range map[string]func(corev1.Volume) bool{
		"broker":      func(volume corev1.Volume) bool { return volume.EmptyDir != nil },
		"provisioner": func(volume corev1.Volume) bool { return volume.PersistentVolumeClaim.ClaimName == "mine" },
	} {
		for _, volume := range deployments(t, ephemeral)[service].Spec.Template.Spec.Volumes {
			if volume.Name == "data" && !want(volume) {
				t.Errorf("the volume of %s is %+v", service, volume)
			}
		}
	}
}

// TestExistingClaim checks that two Pods of the bundler do not use a volume at the same time, unless its access mode permits it.
func TestExistingClaim(t *testing.T) {
	for mode, want := range map[string]appsv1.DeploymentStrategyType{
		"ReadWriteOnce": appsv1.RecreateDeploymentStrategyType,
		"ReadWriteMany": appsv1.RollingUpdateDeploymentStrategyType,
	} {
		objects := mustRender(t, "evaluation", "bundler: {enabled: true, replicas: 1, config: {APP_TLS_SELF_SIGNED: true}, storage: {existingClaim: mine, accessMode: "+mode+"}}")
		if got := deployments(t, objects)["bundler"].Spec.Strategy.Type; got != want {
			t.Errorf("%s: the strategy is %s, want %s", mode, got, want)
		}
	}
}

// TestRolesAreThoseOfResources compares the roles of the chart with resources/rbac, which the tests of the bundle provisioner use.
func TestRolesAreThoseOfResources(t *testing.T) {
	objects := mustRender(t, "production", "")
	found := names(objects, "ClusterRole")

	files, err := filepath.Glob(filepath.Join(resourcesFolder, "rbac", "*.yaml"))
	if err != nil {
		t.Fatal(err)
	}

	roles := []*unstructured.Unstructured{}

	for _, file := range files {
		content, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}

		parsed, err := parse(content)
		if err != nil {
			t.Fatal(err)
		}

		roles = append(roles, parsed...)
	}

	if len(found) != len(roles) || len(roles) < 6 {
		t.Errorf("the chart has %d roles, resources/rbac has %d", len(found), len(roles))
	}

	for _, role := range roles {
		want := find[rbacv1.ClusterRole](t, roles, "ClusterRole", role.GetName()).Rules
		if diff := cmp.Diff(want, find[rbacv1.ClusterRole](t, objects, "ClusterRole", prefix+"-"+role.GetName()).Rules); diff != "" {
			t.Errorf("%s: -resources +chart\n%s", role.GetName(), diff)
		}
	}

	subject := rbacv1.Subject{Kind: "ServiceAccount", Name: prefix + "-bundler", Namespace: namespace}
	cluster := find[rbacv1.ClusterRoleBinding](t, objects, "ClusterRoleBinding", prefix+"-bundle-provisioner")
	inside := find[rbacv1.RoleBinding](t, objects, "RoleBinding", prefix+"-bundle-provisioner")

	if !cmp.Equal(cluster.Subjects, []rbacv1.Subject{subject}) || !cmp.Equal(inside.Subjects, []rbacv1.Subject{subject}) ||
		cluster.RoleRef.Name != prefix+"-bundle-provisioner" || inside.RoleRef.Name != prefix+"-bundle-provisioner-namespace" {
		t.Errorf("the bindings are %+v and %+v", cluster, inside)
	}

	for _, kind := range []string{"ClusterRole", "ClusterRoleBinding", "CustomResourceDefinition"} {
		if found := names(mustRender(t, "evaluation", ""), kind); len(found) > 0 {
			t.Errorf("without the bundler, the chart creates %s %v", kind, found)
		}
	}
}

// TestMonitoring checks the objects for the Prometheus operator. Their definitions may be missing, so they are off by default.
func TestMonitoring(t *testing.T) {
	objects := mustRender(t, "production", "")

	var alerts, rule map[string]any

	content, err := os.ReadFile(filepath.Join(resourcesFolder, "alerts.yaml"))
	if err != nil || yaml.Unmarshal(content, &alerts) != nil {
		t.Fatalf("reading the alerts: %v", err)
	}

	for _, object := range objects {
		if object.GetKind() == "PrometheusRule" {
			rule, _ = object.Object["spec"].(map[string]any)
		}
	}

	if diff := cmp.Diff(alerts, rule); diff != "" {
		t.Errorf("the alerts of the chart differ: -resources +chart\n%s", diff)
	}

	for _, service := range servicePrefixes() {
		monitor := find[serviceMonitor](t, objects, "ServiceMonitor", prefix+"-"+service)
		published := find[corev1.Service](t, objects, "Service", prefix+"-"+service)

		for label, value := range monitor.Spec.Selector.MatchLabels {
			if published.Labels[label] != value {
				t.Errorf("the ServiceMonitor of %s does not select its Service by %s", service, label)
			}
		}

		if !slices.ContainsFunc(published.Spec.Ports, func(port corev1.ServicePort) bool { return port.Name == monitor.Spec.Endpoints[0].Port }) {
			t.Errorf("the Service of %s has no port %s", service, monitor.Spec.Endpoints[0].Port)
		}
	}

	for _, object := range mustRender(t, "evaluation", "") {
		if strings.Contains(object.GetAPIVersion(), "monitoring.coreos.com") {
			t.Errorf("the chart creates %s %s, which the cluster may not know", object.GetKind(), object.GetName())
		}
	}
}

// TestDashboards compares the ConfigMaps with resources/dashboards. The sidecar of Grafana's chart writes each key to a file of one folder, so keys
// must be unique.
func TestDashboards(t *testing.T) {
	folder := filepath.Join(resourcesFolder, "dashboards")

	for name, test := range map[string]struct {
		reason, file, changes string
		want                  []string
	}{
		"Production": {"each dashboard is a ConfigMap", "production", "", []string{"broker", "bundler", "overview", "provisioner", "slo"}},
		"Without the bundler": {
			"a service that is not installed has no dashboard", "evaluation", "monitoring: {dashboards: {enabled: true}}",
			[]string{"broker", "overview", "provisioner", "slo"},
		},
		"Default": {"without Grafana, the ConfigMaps are useless", "evaluation", "", nil},
	} {
		objects := mustRender(t, test.file, test.changes)

		var found []string

		for _, name := range names(objects, "ConfigMap") {
			dashboard, is := strings.CutPrefix(name, prefix+"-dashboard-")
			if !is {
				continue
			}

			found = append(found, dashboard)

			content, err := os.ReadFile(filepath.Join(folder, dashboard+".json"))
			if err != nil {
				t.Fatal(err)
			}

			configMap := find[corev1.ConfigMap](t, objects, "ConfigMap", name)
			if configMap.Labels["grafana_dashboard"] != "1" {
				t.Errorf("%s: the sidecar does not select %v", name, configMap.Labels)
			}

			want := map[string]string{"environment-broker-" + dashboard + ".json": string(content)}
			if diff := cmp.Diff(want, configMap.Data); diff != "" {
				t.Errorf("%s: -resources +chart\n%s", name, diff)
			}
		}

		slices.Sort(found)

		if diff := cmp.Diff(test.want, found); diff != "" {
			t.Errorf("%s: %s: -want +got\n%s", name, test.reason, diff)
		}
	}
}

// serviceMonitor has the fields of a ServiceMonitor that the chart sets.
type serviceMonitor struct {
	APIVersion string         `json:"apiVersion"`
	Kind       string         `json:"kind"`
	Metadata   map[string]any `json:"metadata"`
	Spec       struct {
		JobLabel string `json:"jobLabel"`
		Selector struct {
			MatchLabels map[string]string `json:"matchLabels"`
		} `json:"selector"`
		Endpoints []struct {
			Port     string `json:"port"`
			Path     string `json:"path"`
			Interval string `json:"interval"`
		} `json:"endpoints"`
	} `json:"spec"`
}

func TestPublication(t *testing.T) {
	objects := mustRender(t, "production", "gateway: {enabled: true, parentRefs: [{name: public}], hostnames: [broker.example.com]}")
	service := find[corev1.Service](t, objects, "Service", prefix+"-broker")
	ingress := find[networkingv1.Ingress](t, objects, "Ingress", prefix+"-broker")

	backend := ingress.Spec.Rules[0].HTTP.Paths[0].Backend.Service
	if backend.Name != service.Name || backend.Port.Name != "api" || ingress.Spec.TLS[0].Hosts[0] != ingress.Spec.Rules[0].Host {
		t.Errorf("the Ingress is %+v", ingress.Spec)
	}

	if len(names(objects, "HTTPRoute")) != 1 {
		t.Error("there is no HTTPRoute")
	}

	wildcard := find[networkingv1.Ingress](t, mustRender(t, "production", "ingress: {host: '*.example.com'}"), "Ingress", prefix+"-broker")
	if got := wildcard.Spec.Rules[0].Host; got != "*.example.com" || wildcard.Spec.TLS[0].Hosts[0] != got {
		t.Errorf("the Ingress for all hosts of a domain is %+v", wildcard.Spec)
	}

	// A Service of type LoadBalancer must not publish the metrics, which need no login.
	public := mustRender(t, "production", "broker: {service: {type: LoadBalancer}}")
	for _, port := range find[corev1.Service](t, public, "Service", prefix+"-broker").Spec.Ports {
		if port.Name == "status" {
			t.Error("the load balancer publishes the status port")
		}
	}

	if got := find[corev1.Service](t, public, "Service", prefix+"-broker-status").Spec.Type; got != corev1.ServiceTypeClusterIP {
		t.Errorf("the Service of the status port has the type %s", got)
	}
}
