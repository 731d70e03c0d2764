//go:build garden

package deployments_test

import (
	"cmp"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/environment-broker/environment-broker/bundle/api/v1alpha1"
)

// startWatching starts a controller with its own class. It must find changes through watches, because the next poll is an hour
// away.
func (f *fixture) startWatching() *prometheus.Registry {
	f.Helper()

	registry := prometheus.NewRegistry()
	f.options.Class, f.options.Registry = f.name, registry
	f.options.HealthInterval = cmp.Or(f.options.HealthInterval, time.Hour)
	f.options.DriftInterval = cmp.Or(f.options.DriftInterval, time.Hour)
	f.start()

	return registry
}

// createMany creates BundleDeployments, each with a ConfigMap and a Deployment, and waits until all are installed. It returns their names.
func (f *fixture) createMany(number int, change ...func(*v1alpha1.BundleDeployment)) (names []string) {
	f.Helper()

	for i := range number {
		name := fmt.Sprintf("%s-%d", f.name, i)
		f.contents["https://example.com/"+name] = fmt.Sprintf("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: %s, namespace: default}\ndata: {key: \"1\"}\n", name) +
			"---\n" + deploymentManifest(name)

		made := &v1alpha1.BundleDeployment{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: v1alpha1.BundleDeploymentSpec{
			ProvisionerClassName: f.options.Class, Template: v1alpha1.BundleTemplate{Spec: v1alpha1.TemplateSpec{
				ProvisionerClassName: "foreign", Source: v1alpha1.BundleSource{Type: v1alpha1.SourceTypeHTTP, HTTP: &v1alpha1.HTTPSource{URL: "https://example.com/" + name}},
			}},
		}}
		for _, each := range change {
			each(made)
		}

		if err := f.Create(f.Context(), made); err != nil {
			f.Fatal(err)
		}

		names = append(names, name)
	}

	for _, name := range names {
		f.awaitCondition(name, v1alpha1.TypeInstalled, metav1.ConditionTrue)
	}

	return names
}

func deploymentManifest(name string) string {
	return "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: " + name + ", namespace: default}\nspec:\n  replicas: 2\n  selector: {matchLabels: {app: it}}\n" +
		"  template:\n    metadata: {labels: {app: it}}\n    spec: {containers: [{name: c, image: i}]}\n"
}

// awaitCondition unpacks Bundles and waits for a condition.
func (f *fixture) awaitCondition(name, condition string, status metav1.ConditionStatus) time.Duration {
	f.Helper()

	began := time.Now()
	found := &v1alpha1.BundleDeployment{}

	ticker := time.NewTicker(20 * time.Millisecond)
	defer ticker.Stop()

	for ; !meta.IsStatusConditionPresentAndEqual(found.Status.Conditions, condition, status); <-ticker.C {
		if time.Since(began) > patience {
			f.Fatalf("%s is not %s %s: %+v", condition, name, status, found.Status)
		}

		f.unpackOf(name)

		if err := f.Get(f.Context(), client.ObjectKey{Name: name}, found); err != nil {
			f.Fatal(err)
		}
	}

	return time.Since(began)
}

// bound is how long a repair may take. Without other load, it takes a second, but tests share two cores. It is much shorter than the
// interval of the polls.
const bound = time.Minute

// TestRegression12WatchedObjects changes objects on the hub and on a target. The controller repairs each without a poll.
func TestRegression12WatchedObjects(t *testing.T) {
	for _, where := range []string{"hub", "target"} {
		t.Run(where, func(t *testing.T) {
			f := newFixture(t)
			on := f.Client

			var change []func(*v1alpha1.BundleDeployment)

			if where == "target" {
				on = f.targetClient()
				f.kubeconfig(targetKubeconfig)

				change = append(change, f.onTarget)
			}

			f.startWatching()

			name := f.createMany(1, change...)[0]
			key := client.ObjectKey{Namespace: "default", Name: name}

			for _, row := range []struct {
				reason string
				tamper func(found *corev1.ConfigMap) error
			}{
				{"edited", func(found *corev1.ConfigMap) error { found.Data["key"] = "2"; return on.Update(t.Context(), found) }},
				{"deleted", func(found *corev1.ConfigMap) error { return on.Delete(t.Context(), found) }},
				{"labels stripped", func(found *corev1.ConfigMap) error { found.Labels = nil; return on.Update(t.Context(), found) }},
				{"one label stripped", func(found *corev1.ConfigMap) error {
					delete(found.Labels, v1alpha1.LabelOwnerKind)
					return on.Update(t.Context(), found)
				}},
			} {
				found := &corev1.ConfigMap{}
				if err := on.Get(t.Context(), key, found); err != nil {
					t.Fatal(err)
				}

				if err := row.tamper(found); err != nil {
					t.Fatal(err)
				}

				began := time.Now()

				f.await(row.reason+": not repaired", func() bool {
					found := &corev1.ConfigMap{}
					err := on.Get(t.Context(), key, found)

					return err == nil && found.Data["key"] == "1" && found.Labels[v1alpha1.LabelOwnerName] == name && found.Labels[v1alpha1.LabelOwnerKind] != ""
				})

				if took := time.Since(began); took > bound {
					t.Errorf("%s: repaired after %s", row.reason, took)
				}
			}

			// A change of the spec of a workload is repaired, too.
			scaled := &appsv1.Deployment{}
			if err := on.Get(t.Context(), key, scaled); err != nil {
				t.Fatal(err)
			}

			scaled.Spec.Template.Spec.Containers[0].Image = "other"
			if err := on.Update(t.Context(), scaled); err != nil {
				t.Fatal(err)
			}

			f.await("the image is not repaired", func() bool {
				found := &appsv1.Deployment{}
				return on.Get(t.Context(), key, found) == nil && found.Spec.Template.Spec.Containers[0].Image == "i"
			})
		})
	}
}

// TestChangeDuringRemoval changes an installed object while the installation waits for the removal of an object of the former Bundle. The
// change is repaired when the installation ends, and does not count as the state that the Bundle wants.
func TestChangeDuringRemoval(t *testing.T) {
	f := newFixture(t)
	goes := strings.Replace(f.configMap("goes", "1"), "namespace: default", "namespace: default, finalizers: [example.com/wait]", 1)

	edit := func(name string, change func(*corev1.ConfigMap)) {
		t.Helper()

		found := &corev1.ConfigMap{}
		if err := f.Get(t.Context(), client.ObjectKey{Namespace: "default", Name: f.name + "-" + name}, found); err != nil {
			t.Fatal(err)
		}

		change(found)

		if err := f.Update(t.Context(), found); err != nil {
			t.Fatal(err)
		}
	}

	f.startWatching()
	f.create(f.content("1", f.configMap("stays", "1")+goes))
	f.awaitCondition(f.name, v1alpha1.TypeInstalled, metav1.ConditionTrue)
	f.upgrade(f.content("2", f.configMap("stays", "2")))
	f.await("the installation does not wait for the removal", func() bool {
		f.unpack()

		installed := meta.FindStatusCondition(f.deployment().Status.Conditions, v1alpha1.TypeInstalled)

		return strings.Contains(installed.Message, "it has finalizers example.com/wait")
	})
	edit("stays", func(found *corev1.ConfigMap) { found.Data["key"] = "3" })
	edit("goes", func(found *corev1.ConfigMap) { found.Finalizers = nil })
	f.await("the change is not repaired", func() bool { return f.value(f, "stays") == "2" })
	f.await("the upgrade does not end", func() bool {
		installed := meta.FindStatusCondition(f.deployment().Status.Conditions, v1alpha1.TypeInstalled)

		return installed.Reason == v1alpha1.ReasonInstallationSucceeded
	})
}

// TestRegression13HealthByWatch verifies that the condition Healthy follows a workload without a change of the spec and without a poll.
func TestRegression13HealthByWatch(t *testing.T) {
	f := newFixture(t)
	f.startWatching()

	name := f.createMany(1)[0]
	for _, ready := range []int32{2, 1, 2} {
		f.report(name, ready)

		want := map[bool]metav1.ConditionStatus{true: metav1.ConditionTrue, false: metav1.ConditionFalse}[ready == 2]
		if took := f.awaitCondition(name, v1alpha1.TypeHealthy, want); took > bound {
			t.Errorf("%d replicas: %s after %s", ready, want, took)
		}
	}
}

// report sets the status of the Deployment as its controllers would.
func (f *fixture) report(name string, ready int32) {
	f.Helper()
	f.await("the status cannot be set", func() bool {
		found := &appsv1.Deployment{}
		if err := f.Get(f.Context(), client.ObjectKey{Namespace: "default", Name: name}, found); err != nil {
			f.Fatal(err)
		}

		found.Status = deploymentStatus(found.Generation, ready)

		return f.Status().Update(f.Context(), found) == nil
	})
}

func deploymentStatus(generation int64, ready int32) appsv1.DeploymentStatus {
	available := map[bool]corev1.ConditionStatus{true: corev1.ConditionTrue, false: corev1.ConditionFalse}[ready == 2]

	return appsv1.DeploymentStatus{
		ObservedGeneration: generation, Replicas: 2, UpdatedReplicas: 2, ReadyReplicas: ready, AvailableReplicas: ready,
		Conditions: []appsv1.DeploymentCondition{
			{Type: appsv1.DeploymentAvailable, Status: available},
			{Type: appsv1.DeploymentProgressing, Status: corev1.ConditionTrue, Reason: "NewReplicaSetAvailable"},
		},
	}
}

// TestAtRest verifies that BundleDeployments at rest make no call, on the hub and on a target, that they share watches, and that watches
// end. If a poll were left, it would come every 20 milliseconds.
func TestAtRest(t *testing.T) {
	const interval = 20 * time.Millisecond

	f, between := newFixture(t), newProxy(t)
	f.kubeconfig(between.kubeconfig())
	f.options.HealthInterval, f.options.DriftInterval = interval, interval
	registry := f.startWatching()

	onHub := f.createMany(3)
	for _, name := range onHub {
		f.report(name, 2)
	}

	_, _ = between.take()
	f.name += "-there"
	f.kubeconfig(between.kubeconfig())

	onTarget := f.createMany(3, f.onTarget)
	there := f.targetClient()

	for _, name := range onTarget {
		found := &appsv1.Deployment{}
		if err := there.Get(t.Context(), client.ObjectKey{Namespace: "default", Name: name}, found); err != nil {
			t.Fatal(err)
		}

		found.Status = deploymentStatus(found.Generation, 2)
		if err := there.Status().Update(t.Context(), found); err != nil {
			t.Fatal(err)
		}
	}

	for _, name := range slices.Concat(onHub, onTarget) {
		f.awaitCondition(name, v1alpha1.TypeHealthy, metav1.ConditionTrue)
	}

	if got := gauge(t, registry, "environment_broker_bundle_watches"); got != 4 {
		t.Errorf("%v watches, want one for each of two kinds on two clusters", got)
	}

	if got := gauge(t, registry, "environment_broker_bundle_watched_objects"); got < 12 { // other tests may leave objects
		t.Errorf("%v watched objects", got)
	}

	_, watches := between.take()
	for path, number := range watches {
		if strings.HasSuffix(path, "configmaps") && number != 1 {
			t.Errorf("%d watches on %s", number, path)
		}
	}

	f.awaitQuiet(between, 100*interval)

	for _, name := range slices.Concat(onHub, onTarget) {
		if err := f.Delete(t.Context(), &v1alpha1.BundleDeployment{ObjectMeta: metav1.ObjectMeta{Name: name}}); err != nil {
			t.Fatal(err)
		}
	}

	f.await("watches remain", func() bool {
		return gauge(t, registry, "environment_broker_bundle_watches") == 0 && gauge(t, registry, "environment_broker_bundle_targets") == 0
	})
}

// awaitQuiet waits until there has been no call for the time quiet.
func (f *fixture) awaitQuiet(between *proxy, quiet time.Duration) {
	f.Helper()

	var last []string

	since := time.Now()

	f.await("the controller makes calls at rest", func() bool {
		calls, _ := between.take()

		f.mu.Lock()
		calls = append(calls, f.calls...)
		f.calls = nil
		f.mu.Unlock()

		if len(calls) > 0 {
			last, since = calls, time.Now()
		}

		return time.Since(since) > quiet
	})

	f.Logf("the last calls before %s of rest: %v", quiet, last)
}

// gauge returns the value of a metric.
func gauge(t *testing.T, registry *prometheus.Registry, name string) float64 {
	t.Helper()

	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}

	for _, family := range families {
		if family.GetName() == name {
			return family.GetMetric()[0].GetGauge().GetValue()
		}
	}

	t.Fatalf("no metric %s", name)

	return 0
}

// TestRegression14Rejected makes a target reject its kubeconfig. The controller may make only one call per interval for all
// BundleDeployments, including watches. They must recover on their own, and at once if the Secret gets another kubeconfig.
func TestRegression14Rejected(t *testing.T) {
	const interval = 500 * time.Millisecond

	f, between := newFixture(t), newProxy(t)
	f.options.UnreachableInterval = interval
	f.kubeconfig(between.kubeconfig())

	registry := f.startWatching()
	names := f.createMany(8, f.onTarget)

	const unavailable = "environment_broker_bundle_targets_unavailable"

	rejected := func() {
		t.Helper()
		between.setStatus(http.StatusUnauthorized)

		for _, name := range names {
			f.awaitCondition(name, v1alpha1.TypeInstalled, metav1.ConditionUnknown)
		}

		f.await("calls are not held back", func() bool { return gauge(t, registry, unavailable) == 1 })
	}

	rejected()
	f.await("no condition names the cause", func() bool {
		found := &v1alpha1.BundleDeployment{}
		err := f.Get(t.Context(), client.ObjectKey{Name: names[0]}, found)
		condition := meta.FindStatusCondition(found.Status.Conditions, v1alpha1.TypeInstalled)

		return err == nil && strings.Contains(condition.Message, "rejects the kubeconfig: replace it")
	})

	_, _ = between.take()

	var attempts []string

	began := time.Now()
	f.await("there are no further attempts", func() bool {
		calls, watches := between.take()
		attempts = append(attempts, calls...)

		for path, number := range watches {
			attempts = append(attempts, slices.Repeat([]string{path}, number)...)
		}

		return len(attempts) >= 6
	})

	// One of the attempts may have begun before.
	if took := time.Since(began); took < 4*interval {
		t.Errorf("%d attempts in %s: %v", len(attempts), took, attempts)
	}

	between.setStatus(0)

	for _, name := range names {
		f.awaitCondition(name, v1alpha1.TypeInstalled, metav1.ConditionTrue)
	}

	if got := gauge(t, registry, unavailable); got != 0 {
		t.Errorf("%v clusters are still unavailable", got)
	}

	// The kubeconfig that leads through the proxy counts as expired. The new one connects to the target directly.
	rejected()
	f.kubeconfig(targetKubeconfig)

	for _, name := range names {
		f.awaitCondition(name, v1alpha1.TypeInstalled, metav1.ConditionTrue)
	}
}

// TestRegression14Outage makes a target's API server unreachable for several BundleDeployments. All must become Unknown, the controller may
// make only one call per interval for all of them, and all must recover on their own.
func TestRegression14Outage(t *testing.T) {
	const interval = 500 * time.Millisecond

	f, between := newFixture(t), newProxy(t)
	f.options.UnreachableInterval = interval
	f.kubeconfig(between.kubeconfig())

	registry := f.startWatching()
	names := f.createMany(8, f.onTarget)

	between.setDown(true)

	for _, name := range names {
		f.awaitCondition(name, v1alpha1.TypeInstalled, metav1.ConditionUnknown)
		f.awaitCondition(name, v1alpha1.TypeHealthy, metav1.ConditionUnknown)
	}

	f.await("the circuit breaker is not open", func() bool { return gauge(t, registry, "environment_broker_bundle_targets_unavailable") == 1 })
	_, _ = between.take()

	var attempts []string

	began := time.Now()
	f.await("there are no further attempts", func() bool {
		calls, watches := between.take()
		attempts = append(attempts, calls...)
		attempts = slices.AppendSeq(attempts, maps.Keys(watches))

		return len(attempts) >= 6
	})

	// One of the attempts may have begun before.
	if took := time.Since(began); took < 4*interval {
		t.Errorf("%d attempts in %s: %v", len(attempts), took, attempts)
	}

	between.setDown(false)

	for _, name := range names {
		f.awaitCondition(name, v1alpha1.TypeInstalled, metav1.ConditionTrue)
	}

	if got := gauge(t, registry, "environment_broker_bundle_targets_unavailable"); got != 0 {
		t.Errorf("%v clusters are still unavailable", got)
	}
}
