package runtimes_test

import (
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
)

func (r runtime) custom(t *testing.T) dynamic.Interface {
	t.Helper()
	client, err := dynamic.NewForConfigAndClient(&rest.Config{Host: r.endpoint.URL, QPS: -1}, r.as(t, r.authority, admins, time.Hour))
	if err != nil {
		t.Fatal(err)
	}
	return client
}

func configMap(name, version string, data map[string]any) *unstructured.Unstructured {
	object := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": name}, "data": data,
	}}
	object.SetResourceVersion(version)
	return object
}

func TestServerSideApply(t *testing.T) {
	server, _ := serve(t, t.TempDir())
	maps := startRuntime(t, server, "own").custom(t).Resource(schema.GroupVersionResource{Version: "v1", Resource: "configmaps"})
	own := metav1.ApplyOptions{FieldManager: "one", Force: true}
	first, err := maps.Namespace("default").Apply(t.Context(), "map", configMap("map", "", map[string]any{"a": "1", "b": "1"}), own)
	if err != nil || first.GetUID() == "" {
		t.Fatalf("applying a new object: got %v, %v", first, err)
	}
	if _, err := maps.Namespace("default").Apply(t.Context(), "map", configMap("map", "", map[string]any{"c": "2"}),
		metav1.ApplyOptions{FieldManager: "two"}); err != nil {
		t.Fatal(err)
	}
	second, err := maps.Namespace("default").Apply(t.Context(), "map", configMap("map", "", map[string]any{"a": "3"}), own)
	if err != nil {
		t.Fatal(err)
	}
	data, _, err := unstructured.NestedStringMap(second.Object, "data")
	if err != nil || len(data) != 2 || data["a"] != "3" || data["c"] != "2" || second.GetUID() != first.GetUID() {
		t.Errorf("apply must remove omitted fields of its manager and keep those of other managers: got %v, %v", data, err)
	}
	apply := func(namespace string, object *unstructured.Unstructured, options metav1.ApplyOptions) error {
		_, err := maps.Namespace(namespace).Apply(t.Context(), object.GetName(), object, options)
		return err
	}
	_, merged := maps.Namespace("default").Patch(t.Context(), "map", types.JSONPatchType, []byte(`[{"op":"remove","path":"/data"}]`), metav1.PatchOptions{})
	tests := []struct {
		reason string
		err    error
		is     func(error) bool
	}{
		{
			"a field of another manager is a conflict",
			apply("default", configMap("map", "", map[string]any{"a": "4"}), metav1.ApplyOptions{FieldManager: "two"}), apierrors.IsConflict,
		},
		{"an old version is a conflict", apply("default", configMap("map", first.GetResourceVersion(), nil), own), apierrors.IsConflict},
		{"a version does not keep a missing object from being created", apply("default", configMap("new", "1", nil), own), func(err error) bool { return err == nil }},
		{"the current version is accepted", apply("default", configMap("map", second.GetResourceVersion(), nil), own), func(err error) bool { return err == nil }},
		{"the namespace must exist", apply("nowhere", configMap("map", "", nil), own), apierrors.IsNotFound},
		{"other patches are unsupported", merged, apierrors.IsUnsupportedMediaType},
	}
	for _, test := range tests {
		if !test.is(test.err) {
			t.Errorf("%s: %v", test.reason, test.err)
		}
	}
}

func TestCustomResources(t *testing.T) {
	dir := t.TempDir()
	server, stop := serve(t, dir)
	before := startRuntime(t, server, "own")
	resource := schema.GroupVersionResource{Group: "compass.kyma-project.io", Version: "v1alpha1", Resource: "compassconnections"}
	made, err := before.custom(t).Resource(resource).Create(t.Context(), &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "compass.kyma-project.io/v1alpha1", "kind": "CompassConnection", "metadata": map[string]any{"name": "one"},
		"status": map[string]any{"connectionState": "Connected"},
	}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	stop()
	server, _ = serve(t, dir)
	connections := startRuntime(t, server, "own").custom(t).Resource(resource)
	made.Object["status"] = map[string]any{"connectionState": "Synchronized"}
	if _, err := connections.Update(t.Context(), made, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	listed, err := connections.List(t.Context(), metav1.ListOptions{})
	if err != nil || len(listed.Items) != 1 || listed.Items[0].GetUID() != made.GetUID() {
		t.Fatalf("got %v, %v, want the created object", listed, err)
	}
	if state, _, _ := unstructured.NestedString(listed.Items[0].Object, "status", "connectionState"); state != "Synchronized" {
		t.Errorf("got state %q, want Synchronized", state)
	}
	remove := func(uid types.UID) error {
		return connections.Delete(t.Context(), "one", metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &uid}})
	}
	if err := remove("another"); !apierrors.IsConflict(err) {
		t.Errorf("deleting with a different UID must be a conflict: %v", err)
	}
	if err := remove(made.GetUID()); err != nil {
		t.Error(err)
	}
	if err := remove(made.GetUID()); !apierrors.IsNotFound(err) {
		t.Errorf("a deleted object must not be found: %v", err)
	}
}

func TestServerSideApplyAsDryRun(t *testing.T) {
	server, _ := serve(t, t.TempDir())
	maps := startRuntime(t, server, "own").custom(t).Resource(schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}).Namespace("default")
	own, try := metav1.ApplyOptions{FieldManager: "one"}, metav1.ApplyOptions{FieldManager: "one", DryRun: []string{metav1.DryRunAll}}
	shown, err := maps.Apply(t.Context(), "map", configMap("map", "", map[string]any{"a": "1"}), try)
	if err != nil || shown.GetResourceVersion() != "" {
		t.Errorf("the dry run returned %v, %v", shown, err)
	}
	if _, err := maps.Get(t.Context(), "map", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("a dry run created the object: %v", err)
	}
	made, err := maps.Apply(t.Context(), "map", configMap("map", "", map[string]any{"a": "1"}), own)
	if err != nil {
		t.Fatal(err)
	}
	shown, err = maps.Apply(t.Context(), "map", configMap("map", "", map[string]any{"a": "2"}), try)
	if data, _, _ := unstructured.NestedString(shown.Object, "data", "a"); err != nil || data != "2" {
		t.Errorf("the dry run returned %v, %v", shown, err)
	}
	left, err := maps.Get(t.Context(), "map", metav1.GetOptions{})
	if err != nil || left.GetResourceVersion() != made.GetResourceVersion() {
		t.Errorf("a dry run changed the object: %v, %v", left, err)
	}
}

func TestFinalizersKeepObjects(t *testing.T) {
	server, _ := serve(t, t.TempDir())
	maps := startRuntime(t, server, "own").custom(t).Resource(schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}).Namespace("default")
	update := func(object *unstructured.Unstructured) error {
		object.SetFinalizers(nil)
		_, err := maps.Update(t.Context(), object, metav1.UpdateOptions{})
		return err
	}
	applied := func(*unstructured.Unstructured) error {
		_, err := maps.Apply(t.Context(), "map", configMap("map", "", nil), metav1.ApplyOptions{FieldManager: "one"})
		return err
	}
	for name, release := range map[string]func(*unstructured.Unstructured) error{"update": update, "apply": applied} {
		finalized := configMap("map", "", nil)
		finalized.SetFinalizers([]string{"example.com/one"})
		if _, err := maps.Apply(t.Context(), "map", finalized, metav1.ApplyOptions{FieldManager: "one"}); err != nil {
			t.Fatal(err)
		}
		for range 2 {
			if err := maps.Delete(t.Context(), "map", metav1.DeleteOptions{}); err != nil {
				t.Fatal(err)
			}
		}
		found, err := maps.Get(t.Context(), "map", metav1.GetOptions{})
		if err != nil || found.GetDeletionTimestamp() == nil {
			t.Fatalf("%s: a deleted object with a finalizer must remain with a deletion timestamp: %v, %v", name, found, err)
		}
		if err := release(found); err != nil {
			t.Fatal(err)
		}
		if _, err := maps.Get(t.Context(), "map", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
			t.Errorf("%s: removing the last finalizer must remove the object: %v", name, err)
		}
	}
}
