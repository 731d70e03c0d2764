//go:build garden

package installer_test

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// definition returns a CustomResourceDefinition for the given kind, in an API group of the test.
func (c *cluster) definition(kind string) string {
	plural := strings.ToLower(kind) + "s"
	return fmt.Sprintf("apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: %[1]s.%[2]s}\nspec:\n"+
		"  group: %[2]s\n  scope: Namespaced\n  names: {kind: %[3]s, plural: %[1]s}\n  versions:\n  - name: v1\n    served: true\n"+
		"    storage: true\n    schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}\n---\n", plural, c.group(), kind)
}

func (c *cluster) group() string { return "g" + c.runtime[:8] + ".example.com" }

func (c *cluster) instance(kind, name string) string {
	return fmt.Sprintf("apiVersion: %s/v1\nkind: %s\nmetadata: {name: %s}\n---\n", c.group(), kind, name)
}

func (c *cluster) create(kind, name string, finalizers ...string) *unstructured.Unstructured {
	c.Helper()
	object := &unstructured.Unstructured{Object: map[string]any{"apiVersion": c.group() + "/v1", "kind": kind}}
	object.SetNamespace(c.namespace())
	object.SetName(name)
	object.SetFinalizers(finalizers)
	if err := c.Create(c.Context(), object); err != nil {
		c.Fatal(err)
	}
	return object
}

func (c *cluster) there(kind, name string) bool {
	return c.object(c.group(), "v1", kind, c.namespace(), name) != nil
}

func TestKindAndItsObjectInOneComponent(t *testing.T) {
	c := newCluster(t)
	c.install(release{"a": c.instance("Thing", "one") + c.definition("Thing")}, plan(c.part("a")))
	if !c.there("Thing", "one") {
		t.Error("the object does not exist")
	}
}

func TestPrune(t *testing.T) {
	c := newCluster(t)
	definition := "CustomResourceDefinition things." + c.group()
	both := release{"a": configMap("stays", "1"), "b": c.definition("Thing") + c.instance("Thing", "one")}
	alone := plan(c.part("a"))
	elsewhere := c.part("b")
	elsewhere.Namespace += "-b"
	c.install(both, plan(c.part("a"), elsewhere))
	foreign := c.create("Thing", "theirs")
	theirs := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: elsewhere.Namespace, Name: "theirs"}}
	if err := c.Create(t.Context(), theirs); err != nil {
		t.Fatal(err)
	}
	done := "release 1.0.0 is installed: 1 component"
	message := c.install(both, alone)
	for _, want := range []string{
		done, "; " + definition + " is kept: Thing " + c.namespace() + "/theirs still exists",
		"; Namespace " + elsewhere.Namespace + " is kept: it contains ConfigMap theirs, which does not belong to the installation",
	} {
		if !strings.Contains(message, want) {
			t.Errorf("the message is %q, want %q", message, want)
		}
	}
	if !c.there("Thing", "theirs") || c.object(c.group(), "v1", "Thing", elsewhere.Namespace, "one") != nil {
		t.Error("our objects must be deleted, and objects of other owners preserved")
	}
	if err := c.Delete(t.Context(), foreign); err != nil {
		t.Fatal(err)
	}
	if err := c.Delete(t.Context(), theirs); err != nil {
		t.Fatal(err)
	}
	if message := c.install(both, alone); message != done {
		t.Errorf("everything was removed, but the message is %q", message)
	}
	if c.object("apiextensions.k8s.io", "v1", "CustomResourceDefinition", "", "things."+c.group()) != nil {
		t.Error("the definition still exists")
	}
	if c.object("", "v1", "Namespace", "", elsewhere.Namespace) != nil {
		t.Error("the namespace still exists")
	}
}

func TestComponentThatMovesToAnotherNamespace(t *testing.T) {
	c := newCluster(t)
	parts := release{"a": configMap("one", "1")}
	c.install(parts, plan(c.part("a")))
	moved := c.part("a")
	moved.Namespace += "-b"
	c.install(parts, plan(moved))
	if c.object("", "v1", "Namespace", "", c.namespace()) != nil || c.data(moved.Namespace, "one") == nil {
		t.Error("the object is missing in the new namespace, or still exists in the old one")
	}
}

func TestSharedNamespace(t *testing.T) {
	c := newCluster(t)
	namespace := "apiVersion: v1\nkind: Namespace\nmetadata: {name: \"${namespace}\", labels: {mesh: \"on\"}}\n---\n"
	parts := release{"a": configMap("one", "1"), "b": namespace + configMap("two", "1"), "c": configMap("three", "1")}
	for range 2 {
		c.install(parts, plan(c.part("a"), c.part("b"), c.part("c")))
		if got := c.object("", "v1", "Namespace", "", c.namespace()).GetLabels()["mesh"]; got != "on" {
			t.Errorf("the label of the owning component is %q: another user of the namespace removed it", got)
		}
	}
	c.install(parts, plan(c.part("c")))
	if left := c.object("", "v1", "Namespace", "", c.namespace()); left == nil || left.GetDeletionTimestamp() != nil {
		t.Error("the object was deleted with its component, although another component uses it")
	}
}

func TestObjectThatMovesToAnotherComponent(t *testing.T) {
	c := newCluster(t)
	c.install(release{"a": configMap("one", "1"), "b": configMap("two", "1")}, plan(c.part("a"), c.part("b")))
	before := c.object("", "v1", "ConfigMap", c.namespace(), "one").GetUID()
	c.install(release{"a": configMap("three", "1"), "b": configMap("two", "1") + configMap("one", "1")}, plan(c.part("a"), c.part("b")))
	if after := c.object("", "v1", "ConfigMap", c.namespace(), "one"); after == nil || after.GetUID() != before {
		t.Error("the object was removed in the meantime")
	}
}

func TestForeignNamespaceIsKept(t *testing.T) {
	c := newCluster(t)
	theirs := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: c.namespace()}}
	if err := c.Create(t.Context(), theirs); err != nil {
		t.Fatal(err)
	}
	c.install(release{"a": configMap("one", "1")}, plan(c.part("a")))
	if _, err := c.uninstalled(); err != nil {
		t.Fatal(err)
	}
	if left := c.object("", "v1", "Namespace", "", c.namespace()); left == nil || left.GetDeletionTimestamp() != nil {
		t.Error("the namespace of another owner was deleted")
	}
	if c.data(c.namespace(), "one") != nil {
		t.Error("the installed objects still exist")
	}
}

// TestFullNamespace verifies that an object of another owner is found even if a namespace has more objects than fit into a page.
func TestFullNamespace(t *testing.T) {
	c := newCluster(t)
	c.install(release{"a": configMap("one", "1")}, plan(c.part("a")))
	fill := func(name string, owners ...metav1.OwnerReference) {
		object := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: c.namespace(), Name: name, OwnerReferences: owners}}
		if err := c.Create(t.Context(), object); err != nil {
			t.Fatal(err)
		}
	}
	for i := range 60 {
		fill(fmt.Sprintf("follows-%02d", i), metav1.OwnerReference{APIVersion: "v1", Kind: "Node", Name: "n", UID: types.UID(c.runtime)})
	}
	fill("theirs")
	message, err := c.uninstalled()
	if err != nil || !strings.Contains(message, "it contains ConfigMap theirs, which does not belong to the installation") {
		t.Errorf("got %q, %v", message, err)
	}
	if left := c.object("", "v1", "Namespace", "", c.namespace()); left == nil || left.GetDeletionTimestamp() != nil {
		t.Error("the namespace was deleted with an object of another owner")
	}
}

func TestUninstall(t *testing.T) {
	c := newCluster(t)
	c.install(release{"a": c.definition("Thing"), "b": c.instance("Thing", "one") + configMap("two", "1")}, plan(c.part("a"), c.part("b")))
	c.create("Thing", "theirs", "example.com/held")
	lost := c.object("", "v1", "ConfigMap", c.namespace(), "two")
	lost.SetLabels(nil)
	if err := c.Update(t.Context(), lost); err != nil {
		t.Fatal(err)
	}
	uninstall := c.applier(nil)
	progress, err := uninstall.Uninstall(t.Context(), c.target())
	want := "removing component 1 of 2 (a): waiting until CustomResourceDefinition things." + c.group() + " is gone: it has finalizers"
	if err != nil || progress.Done || !strings.HasPrefix(progress.Message, want) {
		t.Errorf("%+v, %v, want %q", progress, err, want)
	}
	if c.there("Thing", "one") || c.data(c.namespace(), "two") == nil {
		t.Error("objects must be deleted with their component, and adopted objects preserved")
	}
	held := c.object(c.group(), "v1", "Thing", c.namespace(), "theirs")
	if err := c.Patch(t.Context(), held, client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`))); err != nil {
		t.Fatal(err)
	}
	message, err := c.uninstalled()
	if want := "nothing is installed; Namespace " + c.namespace() + " is kept: it contains ConfigMap two, which does not belong to the installation"; err != nil || message != want {
		t.Errorf("%q, %v, want %q", message, err, want)
	}
	if message, err := c.uninstalled(); err != nil || message != "nothing is installed" {
		t.Errorf("once more: %q, %v", message, err)
	}
}
