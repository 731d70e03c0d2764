//go:build garden

package e2e

import (
	"strings"

	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/environment-broker/environment-broker/provisioner/clusteraccess"
	"github.com/environment-broker/environment-broker/provisioner/installation/applier"
)

// checkArrival compares the runtime at the end of a walk with what its customer wants.
func (f *fleet) checkArrival(w *walk) {
	f.Helper()

	wanted := w.last().leaves

	agree := func(what string, want, got any) {
		f.Helper()

		if diff := cmp.Diff(want, got); diff != "" {
			f.Errorf("%s, runtime %s: %s, -want +got:\n%s", w.name, w.runtimeID, what, diff)
		}
	}

	cluster, kyma := f.told(w)
	agree("what the Provisioner tells of the cluster", wanted.clusterState, cluster)
	agree("what it tells of Kyma", wanted.Kyma, kyma)
	agree("the Shoot", wanted.clusterState, f.shootState(w.name))

	inside, disconnect := f.connect(f.Context(), w.name)
	defer disconnect()

	names, installed := f.inside(inside)
	f.same(w.name+": what is installed", wanted.Kyma.objects(), installed)

	if !wanted.Asleep { // else they are bound when it wakes
		agree("administrators", []string{wanted.Administrator}, names)
	}

	if wanted.Kyma.Version == "" {
		return
	}

	agree("Director", "CONNECTED", f.condition(w.runtimeID))

	if !wanted.Asleep {
		f.until("the agent of "+w.name+" to be told as connected", func() bool { return f.connection(w) == "Connected" })
	}
}

// told is what the Provisioner tells of a runtime: of its row, but for whether it sleeps.
func (f *fleet) told(w *walk) (cluster clusterState, kyma kymaState) {
	f.Helper()

	const query = `query ($id: String!) { result: runtimeStatus(id: $id) { hibernationStatus { hibernated } runtimeConfiguration {
		clusterConfig { kubernetesVersion machineType autoScalerMax } kymaConfig { version components { component configuration { key value } } } } } }`

	var status struct {
		HibernationStatus    struct{ Hibernated bool }
		RuntimeConfiguration struct {
			ClusterConfig struct {
				KubernetesVersion, MachineType string
				AutoScalerMax                  int
			}
			KymaConfig struct {
				Version    string
				Components []struct {
					Component     string
					Configuration []struct{ Key, Value string }
				}
			}
		}
	}

	if err := f.insistOn(f.Context(), caller{tenant: w.tenant()}, query, map[string]any{"id": w.runtimeID}, &status); err != nil {
		f.Fatal(err)
	}

	config := status.RuntimeConfiguration.ClusterConfig
	cluster = clusterState{config.KubernetesVersion, config.MachineType, config.AutoScalerMax, status.HibernationStatus.Hibernated}
	kyma.Version = status.RuntimeConfiguration.KymaConfig.Version

	for _, each := range status.RuntimeConfiguration.KymaConfig.Components {
		kyma.Tracing = kyma.Tracing || each.Component == "tracing"

		for _, entry := range each.Configuration {
			if entry.Key == "retention" {
				kyma.Retention = entry.Value
			}
		}
	}

	return cluster, kyma
}

// connection is how the agent of a runtime is told to be connected.
func (f *fleet) connection(w *walk) string {
	f.Helper()

	var status struct{ RuntimeConnectionStatus struct{ Status string } }

	if err := f.insistOn(f.Context(), caller{tenant: w.tenant()},
		`query ($id: String!) { result: runtimeStatus(id: $id) { runtimeConnectionStatus { status } } }`,
		map[string]any{"id": w.runtimeID}, &status); err != nil {
		f.Fatal(err)
	}

	return status.RuntimeConnectionStatus.Status
}

// shootState is what Gardener has, and whether that sleeps by now.
func (f *fleet) shootState(name string) clusterState {
	f.Helper()

	found := &gardencorev1beta1.Shoot{}
	if err := f.garden.Get(f.Context(), client.ObjectKey{Namespace: "garden-local", Name: name}, found); err != nil {
		f.Fatal(err)
	}

	pool := found.Spec.Provider.Workers[0]
	if found.Status.ObservedGeneration != found.Generation {
		f.Errorf("Gardener is still at work on %s", name)
	}

	return clusterState{found.Spec.Kubernetes.Version, pool.Machine.Type, int(pool.Maximum), found.Status.IsHibernated}
}

// inside are the administrators of a cluster, and what was installed on it.
func (f *fleet) inside(cluster dynamic.Interface) (administrators, installed []string) {
	f.Helper()

	for _, resource := range []schema.GroupVersionResource{
		{Version: "v1", Resource: "configmaps"},
		{Version: "v1", Resource: "secrets"},
		{Version: "v1", Resource: "serviceaccounts"},
		{Group: "rbac.authorization.k8s.io", Version: "v1", Resource: "clusterrolebindings"},
	} {
		list, err := cluster.Resource(resource).List(f.Context(), metav1.ListOptions{})
		if err != nil {
			f.Fatal(err)
		}

		for _, object := range list.Items {
			if object.GetName() == clusteraccess.AdministratorsBinding {
				administrators = subjects(object)
			}

			if object.GetLabels()[applier.LabelInstallation] != "" {
				installed = append(installed, described(resource.Resource, object))
			}
		}
	}

	return administrators, installed
}

// subjects are the names of those who are bound to a role.
func subjects(binding unstructured.Unstructured) []string {
	var names []string

	all, _, _ := unstructured.NestedSlice(binding.Object, "subjects")
	for _, each := range all {
		subject, _ := each.(map[string]any)
		name, _, _ := unstructured.NestedString(subject, "name")
		names = append(names, name)
	}

	return names
}

// described is an object with the values of the samples by which releases and orders differ.
func described(resource string, object unstructured.Unstructured) string {
	parts := []string{resource, object.GetNamespace(), object.GetName()}

	for _, key := range []string{"release", "retention"} {
		value, _, _ := unstructured.NestedString(object.Object, "data", key)
		parts = append(parts, value)
	}

	return strings.Join(parts, " ")
}

// objects are those that the samples of releases consist of, as described.
func (k kymaState) objects() []string {
	if k.Version == "" {
		return nil
	}

	lines := []string{
		"configmaps kyma-system cluster-essentials " + k.Version + " ",
		"serviceaccounts kyma-system cluster-essentials  ",
		"clusterrolebindings  cluster-essentials  ",
		"configmaps compass-system compass-runtime-agent " + k.Version + " ",
		"serviceaccounts compass-system compass-runtime-agent  ",
	}

	if k.Retention != "" {
		lines = append(lines,
			"configmaps kyma-system monitoring "+k.Version+" "+k.Retention, "secrets kyma-system monitoring-admin  ")
	}

	if k.Tracing {
		lines = append(lines, "configmaps kyma-system tracing  ")
	}

	return lines
}
