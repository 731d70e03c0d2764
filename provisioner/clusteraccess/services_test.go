package clusteraccess

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic/fake"
	clienttesting "k8s.io/client-go/testing"
)

// object is one of the service catalog.
func object(kind, namespace, name string, spec map[string]any) *unstructured.Unstructured {
	object := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "servicecatalog.k8s.io/v1beta1", "kind": kind, "metadata": map[string]any{"name": name}, "spec": spec,
	}}
	object.SetNamespace(namespace)

	return object
}

func instance(namespace, name, class string) *unstructured.Unstructured {
	return object("ServiceInstance", namespace, name, map[string]any{"clusterServiceClassRef": map[string]any{"name": class}})
}

func newCatalog(objects ...runtime.Object) *fake.FakeDynamicClient {
	return fake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(), map[schema.GroupVersionResource]string{
		resource("clusterservicebrokers"): "ClusterServiceBrokerList",
		resource("clusterserviceclasses"): "ClusterServiceClassList",
		resource(instances):               "ServiceInstanceList",
	}, objects...)
}

// left lists the services that are there.
func left(t *testing.T, client *fake.FakeDynamicClient) []string {
	t.Helper()

	list, err := client.Resource(resource(instances)).List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}

	names := make([]string, 0, len(list.Items))
	for _, each := range list.Items {
		names = append(names, each.GetNamespace()+"/"+each.GetName())
	}

	slices.Sort(names)

	return names
}

func TestRemoveServices(t *testing.T) {
	leaving := instance("one", "leaving", "class-1")
	leaving.SetDeletionTimestamp(new(metav1.Now()))
	leaving.SetFinalizers([]string{"kubernetes-incubator/service-catalog"})

	odd := object("ServiceInstance", "one", "odd", map[string]any{"clusterServiceClassRef": "class-1"})

	client := newCatalog(
		object("ClusterServiceBroker", "", "manager", map[string]any{"url": "https://service-manager.example.com/v1/osb/1"}),
		object("ClusterServiceBroker", "", "other", map[string]any{"url": "https://helm-broker.example.com"}),
		object("ClusterServiceClass", "", "class-1", map[string]any{"clusterServiceBrokerName": "manager"}),
		object("ClusterServiceClass", "", "class-2", map[string]any{"clusterServiceBrokerName": "other"}),
		instance("one", "mine", "class-1"), instance("two", "mine", "class-1"), instance("one", "other", "class-2"), odd, leaving,
	)

	const brokers = "https://service-manager."

	for run, want := range []int{3, 1, 1} {
		if got, err := (services{client}).remove(t.Context(), brokers); err != nil || got != want {
			t.Errorf("run %d: %d are left, want %d, %v", run+1, got, want, err)
		}
	}

	deleted := 0

	for _, action := range client.Actions() {
		if action.GetVerb() == "delete" {
			deleted++
		}
	}

	if deleted != 2 {
		t.Errorf("%d services were asked to go, want 2: one goes already", deleted)
	}

	if diff := cmp.Diff([]string{"one/leaving", "one/odd", "one/other"}, left(t, client)); diff != "" {
		t.Errorf("what another broker made stays, -want +got:\n%s", diff)
	}
}

func TestClusterWithoutServices(t *testing.T) {
	broker := object("ClusterServiceBroker", "", "manager", map[string]any{"url": "https://service-manager.example.com"})
	missing := func(client *fake.FakeDynamicClient, verb, of string, err error) *fake.FakeDynamicClient {
		client.PrependReactor(verb, of, func(clienttesting.Action) (bool, runtime.Object, error) { return true, nil, err })

		return client
	}
	away := apierrors.NewServiceUnavailable("away")
	gone := apierrors.NewNotFound(resource("clusterservicebrokers").GroupResource(), "")
	class := object("ClusterServiceClass", "", "class-1", map[string]any{"clusterServiceBrokerName": "manager"})

	for name, c := range map[string]struct {
		reason   string
		client   *fake.FakeDynamicClient
		wantLeft int
		wantErr  bool
	}{
		"no catalog":  {reason: "the cluster does not know the kind", client: missing(newCatalog(), "list", "clusterservicebrokers", gone)},
		"no broker":   {reason: "nothing comes from these brokers", client: newCatalog(instance("one", "other", "class-1"))},
		"no classes":  {reason: "the broker offers nothing", client: newCatalog(broker)},
		"no services": {reason: "nobody ordered any", client: newCatalog(broker, class)},
		"away":        {reason: "what cannot be read is not taken for empty", client: missing(newCatalog(broker), "list", "*", away), wantErr: true},
		"brokers only": {
			reason: "what cannot be read is not taken for empty", client: missing(newCatalog(broker), "list", "clusterserviceclasses", away), wantErr: true,
		},
		"no deletion": {
			reason: "a service that cannot be removed is told", wantErr: true, wantLeft: 1,
			client: missing(newCatalog(broker, class, instance("one", "mine", "class-1")), "delete", "*", away),
		},
		"gone meanwhile": {
			reason: "somebody else was faster; the next look finds none", wantLeft: 1,
			client: missing(newCatalog(broker, class, instance("one", "mine", "class-1")), "delete", "*", gone),
		},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := services{c.client}.remove(t.Context(), "https://service-manager.")
			if got != c.wantLeft || (err != nil) != c.wantErr {
				t.Errorf("%s: %d are left, %v", c.reason, got, err)
			}
		})
	}
}
