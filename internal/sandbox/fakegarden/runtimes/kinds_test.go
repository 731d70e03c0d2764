package runtimes_test

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"
)

// TestKindsOfANewRuntime checks that users can list the usual kinds of a new cluster. Like kubectl, it finds each kind by its
// name or short name in the discovery documents and then lists the objects.
func TestKindsOfANewRuntime(t *testing.T) {
	server, _ := serve(t, t.TempDir())
	own := startRuntime(t, server, "own")
	typed := own.admin(t)
	discovered := memory.NewMemCacheClient(typed.Discovery())
	mapper := restmapper.NewShortcutExpander(restmapper.NewDeferredDiscoveryRESTMapper(discovered), discovered, nil)
	connection := own.as(t, own.authority, admins, time.Hour)
	t.Cleanup(connection.CloseIdleConnections)
	client, err := dynamic.NewForConfigAndClient(&rest.Config{Host: own.endpoint.URL, QPS: -1}, connection)
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string][]string{
		"ns": {"default", "kube-node-lease", "kube-public", "kube-system"}, "namespace": {"default", "kube-node-lease", "kube-public", "kube-system"},
		"po": {}, "pods": {}, "svc": {}, "cm": {}, "secrets": {}, "sa": {}, "deploy": {}, "deployments": {}, "rs": {}, "ds": {}, "sts": {}, "jobs": {},
		"cronjobs": {}, "ing": {}, "no": {}, "ev": {}, "pv": {}, "pvc": {}, "roles": {}, "rolebindings": {}, "clusterroles": {},
		"clusterrolebindings": {}, "netpol": {}, "sc": {},
	} {
		resource, err := mapper.ResourceFor(schema.GroupVersionResource{Resource: name})
		if err != nil {
			t.Errorf("discovery does not list %s: %v", name, err)
			continue
		}
		list, err := client.Resource(resource).List(t.Context(), metav1.ListOptions{})
		if err != nil {
			t.Errorf("%s cannot be listed: %v", name, err)
			continue
		}
		names := []string{}
		for _, object := range list.Items {
			names = append(names, object.GetName())
		}
		if diff := cmp.Diff(want, names); diff != "" {
			t.Errorf("%s: -want +got\n%s", name, diff)
		}
	}
	if found, err := typed.CoreV1().Namespaces().Get(t.Context(), "default", metav1.GetOptions{}); err != nil || found.Status.Phase != corev1.NamespaceActive {
		t.Errorf("the namespace default is not active: %v %v", found, err)
	}
	all, ok := categories(t, discovered.ServerPreferredResources)["all"]
	slices.Sort(all)
	want := []string{"cronjobs", "daemonsets", "deployments", "jobs", "pods", "replicasets", "services", "statefulsets"}
	if diff := cmp.Diff(want, all); diff != "" || !ok {
		t.Errorf("kubectl get all: -want +got\n%s", diff)
	}
}

// categories returns the resources in each category of the discovery documents.
func categories(t *testing.T, discover func() ([]*metav1.APIResourceList, error)) map[string][]string {
	t.Helper()
	lists, err := discover()
	if err != nil {
		t.Fatal(err)
	}
	found := map[string][]string{}
	for _, list := range lists {
		for _, resource := range list.APIResources {
			for _, category := range resource.Categories {
				found[category] = append(found[category], resource.Name)
			}
		}
	}
	return found
}

// TestEmptyKindsAreReadOnly checks that clients can list and get objects of an empty kind but cannot create or delete them, and
// that the view role cannot read roles, as in a real cluster.
func TestEmptyKindsAreReadOnly(t *testing.T) {
	server, _ := serve(t, t.TempDir())
	own := startRuntime(t, server, "own")
	admin := own.admin(t)
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "new"}}
	if _, err := admin.CoreV1().Pods("default").Create(t.Context(), pod, metav1.CreateOptions{}); !apierrors.IsMethodNotSupported(err) {
		t.Errorf("creating a Pod: %v, want 405", err)
	}
	if err := admin.CoreV1().Pods("default").Delete(t.Context(), "new", metav1.DeleteOptions{}); !apierrors.IsMethodNotSupported(err) {
		t.Errorf("deleting a Pod: %v, want 405", err)
	}
	if _, err := admin.CoreV1().Pods("default").Get(t.Context(), "new", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("reading a Pod: %v, want 404", err)
	}
	viewer := own.withToken(t, addAccount(t, admin, "view"))
	if _, err := viewer.AppsV1().Deployments("").List(t.Context(), metav1.ListOptions{}); err != nil {
		t.Errorf("a viewer cannot list Deployments: %v", err)
	}
	if _, err := viewer.RbacV1().Roles("").List(t.Context(), metav1.ListOptions{}); !apierrors.IsForbidden(err) {
		t.Errorf("a viewer can list roles: %v", err)
	}
}
