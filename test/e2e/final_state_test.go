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

	"github.com/environment-broker/environment-broker/internal/clients/applier"
	"github.com/environment-broker/environment-broker/provisioner/clusteraccess"
)

// finalState is the state of a runtime at the end of a round, as reported by each system.
type finalState struct {
	// Reported and Kyma are read from the Provisioner's API.
	Reported clusterState
	Kyma     kymaState
	// Shoot is read from Gardener. Director is the condition of the runtime in Director.
	Shoot    clusterState
	Director string
	// Administrators and Installed are read from the cluster.
	Administrators, Installed []string
}

// checkFinalStates checks that all systems report, for each runtime, the state that follows from the actions of its scenario.
func (f *fleet) checkFinalStates(scenarios []*scenario) {
	f.Helper()

	const atOnce = 4

	for batch := range slices.Chunk(scenarios, atOnce) {
		var checks sync.WaitGroup

		for _, s := range batch {
			checks.Go(func() {
				got, err := f.readFinalState(s)
				if err != nil {
					f.Errorf("%s, runtime %s: %v", s.name, s.runtimeID, err)

					return
				}

				if diff := cmp.Diff(s.last().want.finalState(), got); diff != "" {
					f.Errorf("%s, runtime %s, -want +got:\n%s", s.name, s.runtimeID, diff)
				}
			})
		}

		checks.Wait()
	}
}

// finalState returns the state that all systems must report for the runtime in the end.
func (s runtimeState) finalState() finalState {
	want := finalState{
		Reported: s.clusterState, Kyma: s.Kyma, Shoot: s.clusterState, Director: "PROVISIONING",
		Administrators: []string{s.Administrator}, Installed: s.Kyma.objects(),
	}

	if s.Kyma.Version != "" {
		want.Director = "CONNECTED"
	}

	if s.Hibernated { // a hibernated cluster gets its role bindings when it wakes up
		want.Administrators = nil
	}

	return want
}

// agentStatus returns the connection status that the Provisioner must report. Only runtimes with Kyma have an agent, and the
// Provisioner does not query hibernated clusters.
func (s runtimeState) agentStatus() string {
	if s.Kyma.Version != "" && !s.Hibernated {
		return "Connected"
	}

	return "Pending"
}

func (f *fleet) readFinalState(s *scenario) (finalState, error) {
	reported, err := f.report(s)
	if err != nil {
		return finalState{}, err
	}

	shoot := &gardencorev1beta1.Shoot{}
	if err := f.garden.Get(f.Context(), client.ObjectKey{Namespace: f.garden.Namespace(), Name: s.name}, shoot); err != nil {
		return finalState{}, err
	}

	cluster, err := s.cluster(f.Context())
	if err != nil {
		return finalState{}, err
	}

	pool := shoot.Spec.Provider.Workers[0]
	found := finalState{
		Reported: reported.cluster(), Kyma: reported.kyma(), Director: f.directorCondition(s.runtimeID),
		Shoot: clusterState{shoot.Spec.Kubernetes.Version, pool.Machine.Type, int(pool.Maximum), shoot.Status.IsHibernated},
	}
	found.Administrators, found.Installed, err = readCluster(f.Context(), cluster)

	if found.Shoot.Hibernated {
		found.Administrators = nil
	}

	return found, err
}

// runtimeReport is the status of a runtime in the Provisioner's API.
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

// report polls the status of a runtime until its agent has the expected connection status.
func (f *fleet) report(s *scenario) (runtimeReport, error) {
	const query = `query ($id: String!) { result: runtimeStatus(id: $id) {
		runtimeConnectionStatus { status } hibernationStatus { hibernated } runtimeConfiguration {
			clusterConfig { kubernetesVersion machineType autoScalerMax } kymaConfig { version components { component configuration { key value } } }
		} } }`

	var status runtimeReport

	err := retry(f.Context(), func() (again bool, err error) {
		status = runtimeReport{}
		if err := f.sendGraphQL(f.Context(), caller{tenant: s.tenant()}, query, map[string]any{"id": s.runtimeID}, &status); err != nil {
			return false, err
		}

		if want, got := s.last().want.agentStatus(), status.RuntimeConnectionStatus.Status; got != want {
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

// readCluster reads the administrators and the installed objects of a cluster.
func readCluster(ctx context.Context, cluster dynamic.Interface) (administrators, installed []string, err error) {
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
				installed = append(installed, describe(resource.Resource, object))
			}
		}
	}

	slices.Sort(installed)

	return administrators, installed, nil
}

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

// describe formats an object as its resource, namespace and name, followed by the values of "release" and "retention" in its data.
func describe(resource string, object unstructured.Unstructured) string {
	columns := []string{resource, object.GetNamespace(), object.GetName()}

	for _, key := range []string{"release", "retention"} {
		value, _, _ := unstructured.NestedString(object.Object, "data", key)
		columns = append(columns, value)
	}

	return strings.Join(columns, " ")
}

// objects returns the objects that the sample releases install, in the format of describe.
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
