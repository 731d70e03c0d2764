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

// finalState is a runtime as all systems report it.
type finalState struct {
	// Reported and Kyma are from the Provisioner's API.
	Reported clusterState
	Kyma     kymaState
	// Shoot is from Gardener; Director is the condition of the runtime in Director.
	Shoot    clusterState
	Director string
	// Administrators and Installed are read from the cluster.
	Administrators, Installed []string
}

// checkFinalStates compares the runtimes with the last actions of their scenarios.
func (f *fleet) checkFinalStates(scenarios []*scenario) {
	f.Helper()

	const atOnce = 4

	for some := range slices.Chunk(scenarios, atOnce) {
		var checks sync.WaitGroup

		for _, w := range some {
			checks.Go(func() {
				got, err := f.readFinalState(w)
				if err != nil {
					f.Errorf("%s, runtime %s: %v", w.name, w.runtimeID, err)

					return
				}

				if diff := cmp.Diff(w.last().want.finalState(), got); diff != "" {
					f.Errorf("%s, runtime %s, -want +got:\n%s", w.name, w.runtimeID, diff)
				}
			})
		}

		checks.Wait()
	}
}

// finalState returns the state that all systems must report.
func (s runtimeState) finalState() finalState {
	wanted := finalState{
		Reported: s.clusterState, Kyma: s.Kyma, Shoot: s.clusterState, Director: "PROVISIONING",
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

// connection returns the expected status of the agent. Only Kyma has an agent, and the Provisioner does not query a hibernated cluster.
func (s runtimeState) connection() string {
	if s.Kyma.Version != "" && !s.Asleep {
		return "Connected"
	}

	return "Pending"
}

func (f *fleet) readFinalState(w *scenario) (finalState, error) {
	reported, err := f.report(w)
	if err != nil {
		return finalState{}, err
	}

	shoot := &gardencorev1beta1.Shoot{}
	if err := f.garden.Get(f.Context(), client.ObjectKey{Namespace: "garden-local", Name: w.name}, shoot); err != nil {
		return finalState{}, err
	}

	cluster, err := w.cluster(f.Context())
	if err != nil {
		return finalState{}, err
	}

	pool := shoot.Spec.Provider.Workers[0]
	found := finalState{
		Reported: reported.cluster(), Kyma: reported.kyma(), Director: f.condition(w.runtimeID),
		Shoot: clusterState{shoot.Spec.Kubernetes.Version, pool.Machine.Type, int(pool.Maximum), shoot.Status.IsHibernated},
	}
	found.Administrators, found.Installed, err = inside(f.Context(), cluster)

	if found.Shoot.Asleep {
		found.Administrators = nil
	}

	return found, err
}

// runtimeReport is the Provisioner's report on a runtime.
type runtimeReport struct {
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

// report polls for the report until the agent has the expected status.
func (f *fleet) report(w *scenario) (runtimeReport, error) {
	const query = `query ($id: String!) { result: runtimeStatus(id: $id) {
		runtimeConnectionStatus { status } hibernationStatus { hibernated } runtimeConfiguration {
			clusterConfig { kubernetesVersion machineType autoScalerMax } kymaConfig { version components { component configuration { key value } } }
		} } }`

	var status runtimeReport

	err := persist(f.Context(), func() (again bool, err error) {
		status = runtimeReport{}
		if err := f.insistOn(f.Context(), caller{tenant: w.tenant()}, query, map[string]any{"id": w.runtimeID}, &status); err != nil {
			return false, err
		}

		if want, got := w.last().want.connection(), status.RuntimeConnectionStatus.Status; got != want {
			return true, fmt.Errorf("the status of its agent is %s, want %s", got, want)
		}

		return false, nil
	})

	return status, err
}

func (r runtimeReport) cluster() clusterState {
	config := r.RuntimeConfiguration.ClusterConfig

	return clusterState{config.KubernetesVersion, config.MachineType, config.AutoScalerMax, r.HibernationStatus.Hibernated}
}

func (r runtimeReport) kyma() kymaState {
	kyma := kymaState{Version: r.RuntimeConfiguration.KymaConfig.Version}

	for _, each := range r.RuntimeConfiguration.KymaConfig.Components {
		kyma.Tracing = kyma.Tracing || each.Component == "tracing"

		for _, entry := range each.Configuration {
			if entry.Key == "retention" {
				kyma.Retention = entry.Value
			}
		}
	}

	return kyma
}

// inside reads the administrators of a cluster and the installed objects.
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

// subjects returns the names in a role binding.
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

// described formats an object: its kind, its name, and the values that differ between releases and orders.
func described(resource string, object unstructured.Unstructured) string {
	parts := []string{resource, object.GetNamespace(), object.GetName()}

	for _, key := range []string{"release", "retention"} {
		value, _, _ := unstructured.NestedString(object.Object, "data", key)
		parts = append(parts, value)
	}

	return strings.Join(parts, " ")
}

// objects returns the installed objects of the sample releases, formatted by described.
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
