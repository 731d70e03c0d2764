//go:build garden

package e2e

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"

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

// arrival is what has become of a runtime, as those tell it who know a part of it.
type arrival struct {
	// Told and Kyma are what the Provisioner tells: its row, but for whether the cluster sleeps.
	Told clusterState
	Kyma kymaState
	// Shoot is what Gardener has, Director the condition of the runtime there.
	Shoot    clusterState
	Director string
	// Administrators and Installed are inside of the cluster.
	Administrators, Installed []string
}

// checkArrivals compares the runtimes at the end of walks with what their customers want.
func (f *fleet) checkArrivals(walks []*walk) {
	f.Helper()

	const atOnce = 4

	for some := range slices.Chunk(walks, atOnce) {
		var checks sync.WaitGroup

		for _, w := range some {
			checks.Go(func() {
				got, err := f.arrived(w)
				if err != nil {
					f.Errorf("%s, runtime %s: %v", w.name, w.runtimeID, err)

					return
				}

				if diff := cmp.Diff(w.last().leaves.arrival(), got); diff != "" {
					f.Errorf("%s, runtime %s, -want +got:\n%s", w.name, w.runtimeID, diff)
				}
			})
		}

		checks.Wait()
	}
}

// arrival is how it is to be told.
func (s runtimeState) arrival() arrival {
	wanted := arrival{
		Told: s.clusterState, Kyma: s.Kyma, Shoot: s.clusterState, Director: "PROVISIONING",
		Administrators: []string{s.Administrator}, Installed: s.Kyma.objects(),
	}

	if s.Kyma.Version != "" {
		wanted.Director = "CONNECTED"
	}

	if s.Asleep { // they are bound when it wakes
		wanted.Administrators = nil
	}

	return wanted
}

// connection is how its agent is to be told: there is one with Kyma, and it is not asked while the cluster sleeps.
func (s runtimeState) connection() string {
	if s.Kyma.Version != "" && !s.Asleep {
		return "Connected"
	}

	return "Pending"
}

func (f *fleet) arrived(w *walk) (arrival, error) {
	told, err := f.told(w)
	if err != nil {
		return arrival{}, err
	}

	shoot := &gardencorev1beta1.Shoot{}
	if err := f.garden.Get(f.Context(), client.ObjectKey{Namespace: "garden-local", Name: w.name}, shoot); err != nil {
		return arrival{}, err
	}

	cluster, err := w.cluster(f.Context())
	if err != nil {
		return arrival{}, err
	}

	pool := shoot.Spec.Provider.Workers[0]
	found := arrival{
		Told: told.cluster(), Kyma: told.kyma(), Director: f.condition(w.runtimeID),
		Shoot: clusterState{shoot.Spec.Kubernetes.Version, pool.Machine.Type, int(pool.Maximum), shoot.Status.IsHibernated},
	}
	found.Administrators, found.Installed, err = inside(f.Context(), cluster)

	if found.Shoot.Asleep {
		found.Administrators = nil
	}

	return found, err
}

// toldOf is what the Provisioner tells of a runtime.
type toldOf struct {
	RuntimeConnectionStatus struct{ Status string }
	HibernationStatus       struct{ Hibernated bool }
	RuntimeConfiguration    struct {
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

// told asks for it until the agent is told as it should be.
func (f *fleet) told(w *walk) (toldOf, error) {
	const query = `query ($id: String!) { result: runtimeStatus(id: $id) {
		runtimeConnectionStatus { status } hibernationStatus { hibernated } runtimeConfiguration {
			clusterConfig { kubernetesVersion machineType autoScalerMax } kymaConfig { version components { component configuration { key value } } }
		} } }`

	var status toldOf

	err := persist(f.Context(), func() (again bool, err error) {
		status = toldOf{}
		if err := f.insistOn(f.Context(), caller{tenant: w.tenant()}, query, map[string]any{"id": w.runtimeID}, &status); err != nil {
			return false, err
		}

		if want, got := w.last().leaves.connection(), status.RuntimeConnectionStatus.Status; got != want {
			return true, fmt.Errorf("its agent is told as %s, want %s", got, want)
		}

		return false, nil
	})

	return status, err
}

func (t toldOf) cluster() clusterState {
	config := t.RuntimeConfiguration.ClusterConfig

	return clusterState{config.KubernetesVersion, config.MachineType, config.AutoScalerMax, t.HibernationStatus.Hibernated}
}

func (t toldOf) kyma() kymaState {
	kyma := kymaState{Version: t.RuntimeConfiguration.KymaConfig.Version}

	for _, each := range t.RuntimeConfiguration.KymaConfig.Components {
		kyma.Tracing = kyma.Tracing || each.Component == "tracing"

		for _, entry := range each.Configuration {
			if entry.Key == "retention" {
				kyma.Retention = entry.Value
			}
		}
	}

	return kyma
}

// inside are the administrators of a cluster, and the objects that were installed on it.
func inside(ctx context.Context, cluster dynamic.Interface) (administrators, installed []string, err error) {
	for _, resource := range []schema.GroupVersionResource{
		{Version: "v1", Resource: "configmaps"},
		{Version: "v1", Resource: "secrets"},
		{Version: "v1", Resource: "serviceaccounts"},
		{Group: "rbac.authorization.k8s.io", Version: "v1", Resource: "clusterrolebindings"},
	} {
		list, err := cluster.Resource(resource).List(ctx, metav1.ListOptions{})
		if err != nil {
			return nil, nil, fmt.Errorf("listing %s: %w", resource.Resource, err)
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

	slices.Sort(installed)

	return administrators, installed, nil
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

// described is an object with the values by which the releases of the samples, and orders of them, differ.
func described(resource string, object unstructured.Unstructured) string {
	parts := []string{resource, object.GetNamespace(), object.GetName()}

	for _, key := range []string{"release", "retention"} {
		value, _, _ := unstructured.NestedString(object.Object, "data", key)
		parts = append(parts, value)
	}

	return strings.Join(parts, " ")
}

// objects are those of which the samples of releases consist, as described.
func (k kymaState) objects() []string {
	if k.Version == "" {
		return nil
	}

	objects := []string{
		"configmaps kyma-system cluster-essentials " + k.Version + " ",
		"serviceaccounts kyma-system cluster-essentials  ",
		"clusterrolebindings  cluster-essentials  ",
		"configmaps compass-system compass-runtime-agent " + k.Version + " ",
		"serviceaccounts compass-system compass-runtime-agent  ",
	}

	if k.Retention != "" {
		objects = append(objects, "configmaps kyma-system monitoring "+k.Version+" "+k.Retention, "secrets kyma-system monitoring-admin  ")
	}

	if k.Tracing {
		objects = append(objects, "configmaps kyma-system tracing  ")
	}

	slices.Sort(objects)

	return objects
}
