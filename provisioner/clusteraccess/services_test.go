package clusteraccess

import (
	"fmt"
	"slices"
	"strings"
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

func binding(namespace, name, of string) *unstructured.Unstructured {
	return object("ServiceBinding", namespace, name, map[string]any{"instanceRef": map[string]any{"name": of}})
}

// deleting marks the object as being deleted, with a finalizer of the service catalog.
func deleting(object *unstructured.Unstructured, conditions ...any) *unstructured.Unstructured {
	object.SetDeletionTimestamp(new(metav1.Now()))
	object.SetFinalizers([]string{"kubernetes-incubator/service-catalog"})
	object.Object["status"] = map[string]any{"conditions": conditions}

	return object
}

func newCatalog(objects ...runtime.Object) *fake.FakeDynamicClient {
	return fake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(), map[schema.GroupVersionResource]string{
		resource(clusterBrokers):   "ClusterServiceBrokerList",
		resource(namespaceBrokers): "ServiceBrokerList",
		resource(serviceClasses):   "ClusterServiceClassList",
		resource(serviceInstances): "ServiceInstanceList",
		resource(serviceBindings):  "ServiceBindingList",
	}, objects...)
}

// ourBrokerAnd returns catalog objects: our broker and a foreign one, each with a class, and the given objects.
func ourBrokerAnd(more ...runtime.Object) []runtime.Object {
	return append(more,
		object("ClusterServiceBroker", "", "manager", map[string]any{"url": "https://service-manager.example.com/v1/osb/1"}),
		object("ClusterServiceBroker", "", "other", map[string]any{"url": "https://helm-broker.example.com"}),
		object("ClusterServiceClass", "", "class-1", map[string]any{"clusterServiceBrokerName": "manager"}),
		object("ClusterServiceClass", "", "class-2", map[string]any{"clusterServiceBrokerName": "other"}),
	)
}

// names returns the sorted names of all objects of a resource.
func names(t *testing.T, client *fake.FakeDynamicClient, of string) []string {
	t.Helper()

	list, err := client.Resource(resource(of)).List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}

	names := make([]string, 0, len(list.Items))
	for _, each := range list.Items {
		names = append(names, nameOf(each))
	}

	slices.Sort(names)

	return names
}

// deletions counts the delete requests of the client.
func deletions(client *fake.FakeDynamicClient) int {
	deleted := 0

	for _, action := range client.Actions() {
		if action.GetVerb() == "delete" {
			deleted++
		}
	}

	return deleted
}

func TestRemoveServices(t *testing.T) {
	odd := object("ServiceInstance", "one", "odd", map[string]any{"clusterServiceClassRef": "class-1"})
	client := newCatalog(ourBrokerAnd(
		instance("one", "bound", "class-1"), instance("two", "mine", "class-1"), instance("one", "other", "class-2"), odd,
		deleting(instance("one", "deleting", "class-1")),
		binding("one", "first", "bound"), binding("one", "second", "bound"), binding("one", "foreign", "other"), binding("two", "elsewhere", "bound"),
	)...)

	for run, want := range []string{
		"3 of its services and 2 of their bindings; the first is ServiceBinding one/first",
		"2 of its services; the first is ServiceInstance one/bound",
		"1 of its services; the first is ServiceInstance one/deleting",
		"1 of its services; the first is ServiceInstance one/deleting",
	} {
		got, err := services{client}.remove(t.Context(), "https://service-manager.")
		if got.String() != want || err != nil {
			t.Errorf("run %d: remaining: %q, want %q, %v", run+1, got, want, err)
		}
	}

	if got := deletions(client); got != 4 {
		t.Errorf("%d objects were deleted, want 2 bindings and 2 services: one is being deleted already", got)
	}

	want := map[string][]string{
		serviceInstances: {"one/deleting", "one/odd", "one/other"}, serviceBindings: {"one/foreign", "two/elsewhere"},
	}
	got := map[string][]string{serviceInstances: names(t, client, serviceInstances), serviceBindings: names(t, client, serviceBindings)}

	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("objects of another broker were removed, -want +got:\n%s", diff)
	}
}

func TestRemainingServiceHasReason(t *testing.T) {
	condition := func(kind, status, reason, message string) map[string]any {
		return map[string]any{"type": kind, "status": status, "reason": reason, "message": message}
	}

	for name, c := range map[string]struct {
		reason string
		status []any
		want   string
	}{
		"reason":     {"the catalog reports the reason", []any{condition("Ready", "Unknown", "UnbindCallFailed", "status 502")}, ", which reports UnbindCallFailed: status 502"},
		"ready":      {"a ready object has no reason", []any{condition("Ready", "True", "InjectedBindResult", "done")}, ""},
		"other":      {"other conditions than Ready are ignored", []any{condition("Failed", "True", "No", "never")}, ""},
		"malformed":  {"a condition of another type is ignored", []any{"Ready"}, ""},
		"long text":  {"long messages are shortened", []any{condition("Ready", "False", "R", strings.Repeat("x", 5000))}, ", which reports R: " + strings.Repeat("x", longestProblem-3)},
		"no message": {"the reason replaces a missing message", []any{condition("Ready", "False", "Busy", "")}, ", which reports Busy"},
	} {
		t.Run(name, func(t *testing.T) {
			client := newCatalog(ourBrokerAnd(instance("one", "mine", "class-1"), deleting(binding("one", "stuck", "mine"), c.status...))...)
			want := "1 of its services and 1 of their bindings; the first is ServiceBinding one/stuck" + c.want

			if got, err := (services{client}).remove(t.Context(), "https://service-manager."); err != nil || got.String() != want {
				t.Errorf("%s: got %q, want %q, %v", c.reason, got, want, err)
			}
		})
	}
}

func TestOneCallIsBounded(t *testing.T) {
	more := []runtime.Object{}
	for i := range 2*maxDeletions + 1 {
		more = append(more, instance("one", fmt.Sprintf("mine-%d", i), "class-1"))
	}

	client := newCatalog(ourBrokerAnd(more...)...)

	for run, want := range []int{2*maxDeletions + 1, maxDeletions + 1, 1, 0} {
		if got, err := (services{client}).remove(t.Context(), "https://service-manager."); len(got.instances) != want || err != nil {
			t.Errorf("run %d: %d are left, want %d, %v", run+1, len(got.instances), want, err)
		}
	}
}

func TestBrokersAreReleased(t *testing.T) {
	finalized := func(object *unstructured.Unstructured) *unstructured.Unstructured {
		object.SetFinalizers([]string{"kubernetes-incubator/service-catalog"})

		return object
	}
	client := newCatalog(
		finalized(object("ClusterServiceBroker", "", "manager", nil)), finalized(object("ClusterServiceBroker", "", "refused", nil)),
		finalized(object("ServiceBroker", "one", "own", nil)), object("ServiceBroker", "one", "free", nil),
	)

	refusing := true
	client.PrependReactor("update", clusterBrokers, func(action clienttesting.Action) (bool, runtime.Object, error) {
		update, _ := action.(clienttesting.UpdateAction)
		broker, _ := update.GetObject().(*unstructured.Unstructured)

		return refusing && broker.GetName() == "refused", nil, apierrors.NewServiceUnavailable("no webhook")
	})

	if err := (services{client}).releaseBrokers(t.Context()); err == nil || !strings.Contains(err.Error(), "ClusterServiceBroker refused") {
		t.Errorf("the error names the brokers that remain: %v", err)
	}

	refusing = false

	if err := (services{client}).releaseBrokers(t.Context()); err != nil {
		t.Error(err)
	}

	updated := 0

	for _, action := range client.Actions() {
		if action.GetVerb() == "update" {
			updated++
		}
	}

	if updated != 4 {
		t.Errorf("%d updates, want 4: one for each of the three brokers with a finalizer, and a repeated one", updated)
	}

	for _, of := range []string{clusterBrokers, namespaceBrokers} {
		list, err := client.Resource(resource(of)).List(t.Context(), metav1.ListOptions{})
		if err != nil {
			t.Fatal(err)
		}

		for _, broker := range list.Items {
			if len(broker.GetFinalizers()) > 0 {
				t.Errorf("%s still has the finalizers %v", nameOf(broker), broker.GetFinalizers())
			}
		}
	}
}

func TestClusterWithoutServices(t *testing.T) {
	broker := object("ClusterServiceBroker", "", "manager", map[string]any{"url": "https://service-manager.example.com"})
	missing := func(client *fake.FakeDynamicClient, verb, of string, err error) *fake.FakeDynamicClient {
		client.PrependReactor(verb, of, func(clienttesting.Action) (bool, runtime.Object, error) { return true, nil, err })

		return client
	}
	unavailable := apierrors.NewServiceUnavailable("unavailable")
	gone := apierrors.NewNotFound(resource(clusterBrokers).GroupResource(), "")
	class := object("ClusterServiceClass", "", "class-1", map[string]any{"clusterServiceBrokerName": "manager"})
	mine := func() *fake.FakeDynamicClient { return newCatalog(broker, class, instance("one", "mine", "class-1")) }

	for name, c := range map[string]struct {
		reason   string
		client   *fake.FakeDynamicClient
		wantLeft int
		wantErr  bool
	}{
		"no catalog":    {reason: "the cluster does not serve the kind", client: missing(newCatalog(), "list", clusterBrokers, gone)},
		"no broker":     {reason: "no broker matches", client: newCatalog(instance("one", "other", "class-1"))},
		"no classes":    {reason: "the broker has no classes", client: newCatalog(broker)},
		"no services":   {reason: "the broker has no instances", client: newCatalog(broker, class)},
		"unavailable":   {reason: "a list that cannot be read must not be treated as empty", client: missing(newCatalog(broker), "list", "*", unavailable), wantErr: true},
		"brokers only":  {reason: "a list of classes that cannot be read must not be treated as empty", client: missing(newCatalog(broker), "list", serviceClasses, unavailable), wantErr: true},
		"services only": {reason: "a list of bindings that cannot be read must not be treated as empty", client: missing(mine(), "list", serviceBindings, unavailable), wantLeft: 1, wantErr: true},
		"no deletion":   {reason: "a failed deletion is an error", client: missing(mine(), "delete", "*", unavailable), wantErr: true, wantLeft: 1},
		"gone meanwhile": {
			reason: "another client has deleted the instance; the next call finds none", wantLeft: 1, client: missing(mine(), "delete", "*", gone),
		},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := services{c.client}.remove(t.Context(), "https://service-manager.")
			if len(got.instances) != c.wantLeft || (err != nil) != c.wantErr {
				t.Errorf("%s: %d are left, %v", c.reason, len(got.instances), err)
			}
		})
	}
}
