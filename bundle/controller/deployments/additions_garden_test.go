//go:build garden

package deployments_test

import (
	"fmt"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/environment-broker/environment-broker/bundle/api/v1alpha1"
	"github.com/environment-broker/environment-broker/bundle/bundletest"
)

// TestInstallNamespace installs an object without a namespace.
func TestInstallNamespace(t *testing.T) {
	f := newFixture(t)
	namespace := "ns-" + f.name
	f.create(f.content("1", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: one}\n"), func(made *v1alpha1.BundleDeployment) {
		made.Spec.InstallNamespace = namespace
	})
	f.settle()
	f.wantInstalled()

	if err := f.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: "one"}, &corev1.ConfigMap{}); err != nil {
		t.Error(err)
	}
}

// TestSameObjectWithoutNamespace verifies that a Bundle cannot contain different objects that become one object in the install namespace,
// or because their kind has no namespace. Each comparison would apply one over the other. Equal objects are installed once.
func TestSameObjectWithoutNamespace(t *testing.T) {
	f := newFixture(t)
	without := func(manifest string) string { return strings.Replace(manifest, ", namespace: default", "", 1) }
	role := func(namespace, verb string) string {
		return "apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata: {name: " + f.name + namespace + "}\nrules:\n- {apiGroups: [\"\"], resources: [pods], verbs: [" +
			verb + "]}\n---\n"
	}

	f.create(f.content("1", f.configMap("one", "1")+without(f.configMap("one", "2"))))
	f.settle()
	f.want(v1alpha1.TypeInstalled, metav1.ConditionFalse, v1alpha1.ReasonInstallFailed, "the bundle contains ConfigMap default/"+f.name+"-one twice")
	f.upgrade(f.content("2", role("", "get")+role(", namespace: default", "list")))
	f.settle()
	f.want(v1alpha1.TypeInstalled, metav1.ConditionFalse, v1alpha1.ReasonInstallFailed, "the bundle contains ClusterRole "+f.name+" twice")
	f.upgrade(f.content("3", f.configMap("one", "1")+without(f.configMap("one", "1"))+role("", "get")+role(", namespace: default", "get")))
	f.settle()
	f.wantInstalled()
	f.restart() // without its memory, the controller compares the objects again
	f.written()
	f.settle()

	if order := f.written(); len(order) > 0 {
		t.Errorf("the comparison writes: %v", order)
	}
}

// TestInstallNamespaceDuringPivot changes the namespace while a pivot waits for the removal of a former object. The objects of the new Bundle
// are applied again in the new namespace, and removed from the former one.
func TestInstallNamespaceDuringPivot(t *testing.T) {
	f := newFixture(t)
	one := "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: " + f.name + "-one}\n---\n"
	f.create(f.content("1", one+f.slowConfigMap("two")))
	f.settle()
	f.wantInstalled()

	f.upgrade(f.content("2", one))
	f.removing()
	f.change(func(found *v1alpha1.BundleDeployment) { found.Spec.InstallNamespace = f.name })

	if _, err := f.pass(); err != nil {
		t.Fatal(err)
	}

	f.finishRemoval("two")
	f.settle()
	f.wantInstalled()

	for namespace, want := range map[string]bool{f.name: true, "default": false} {
		err := f.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: f.name + "-one"}, &corev1.ConfigMap{})
		if client.IgnoreNotFound(err) != nil || (err == nil) != want {
			t.Errorf("the object in the namespace %s: %v", namespace, err)
		}
	}
}

// slowConfigMap returns the manifest of a ConfigMap with a finalizer, whose removal takes until finishRemoval is called.
func (f *fixture) slowConfigMap(name string) string {
	return "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: " + f.name + "-" + name + ", namespace: default, finalizers: [example.com/slow]}\n---\n"
}

// removing reconciles until the pivot waits for the removal of a former object.
func (f *fixture) removing() {
	f.Helper()

	for range 4 {
		if _, err := f.pass(); err != nil {
			f.Fatal(err)
		}

		f.unpack()
	}

	f.want(v1alpha1.TypeInstalled, metav1.ConditionTrue, v1alpha1.ReasonInstallPending, "removing objects of earlier bundles")
}

// finishRemoval removes the finalizer of a slowConfigMap.
func (f *fixture) finishRemoval(name string) {
	f.Helper()

	slow := &corev1.ConfigMap{}
	if err := f.Get(f.Context(), client.ObjectKey{Namespace: "default", Name: f.name + "-" + name}, slow); err != nil {
		f.Fatal(err)
	}

	slow.Finalizers = nil
	if err := f.Update(f.Context(), slow); err != nil {
		f.Fatal(err)
	}
}

// TestDependencyDuringPivot checks that a BundleDeployment waits until the one it depends on has pivoted to its new template.
func TestDependencyDuringPivot(t *testing.T) {
	first, second := newFixture(t), newFixture(t)
	first.create(first.content("1", first.configMap("one", "1")))
	first.settle()
	second.create(second.content("1", second.configMap("one", "1")), func(made *v1alpha1.BundleDeployment) {
		made.Spec.DependsOn = []v1alpha1.Dependency{{Name: first.name}}
	})
	second.settle()

	first.upgrade(first.content("2", "apiVersion: v1\nkind: Service\nmetadata: {name: "+first.name+", namespace: default}\nspec: {ports: [{port: 99999}]}\n"))
	first.settle()
	second.upgrade(second.content("2", second.configMap("one", "2")))
	second.settle()
	second.want(v1alpha1.TypeInstalled, metav1.ConditionTrue, v1alpha1.ReasonDependencyPending, "waiting until BundleDeployment "+first.name)

	if got := second.value(second, "one"); got != "1" {
		t.Errorf("the value is %q although the dependency is not upgraded", got)
	}

	first.upgrade(first.content("3", first.configMap("one", "3")))
	first.settle()
	second.settle()
	second.wantInstalled()
}

// TestChangedSpecIsTriedAtOnce corrects a cluster on which a Bundle cannot be installed, and changes the spec, but not the template.
func TestChangedSpecIsTriedAtOnce(t *testing.T) {
	f := newFixture(t)
	theirs := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: f.name + "-one"}}

	if err := f.Create(t.Context(), theirs); err != nil {
		t.Fatal(err)
	}

	f.create(f.content("1", f.configMap("one", "1")))
	f.settle()
	f.want(v1alpha1.TypeInstalled, metav1.ConditionFalse, v1alpha1.ReasonInstallFailed, "exists already")

	if err := f.Delete(t.Context(), theirs); err != nil {
		t.Fatal(err)
	}

	if _, err := f.pass(); err != nil {
		t.Fatal(err)
	}

	f.want(v1alpha1.TypeInstalled, metav1.ConditionFalse, v1alpha1.ReasonInstallFailed, "exists already")
	f.change(func(found *v1alpha1.BundleDeployment) {
		found.Spec.Config = runtime.RawExtension{Raw: []byte(`{"again":"1"}`)}
	})

	if _, err := f.pass(); err != nil {
		t.Fatal(err)
	}

	f.wantInstalled()
}

// TestMaskedTexts checks that a condition and an event do not quote a secret value.
func TestMaskedTexts(t *testing.T) {
	f := newFixture(t)
	f.create(f.content("1", "apiVersion: v1\nkind: Service\nmetadata: {name: "+f.name+", namespace: default}\nspec: {ports: [{port: 80, name: hunter2_X}]}\n"))
	f.settle()
	f.want(v1alpha1.TypeInstalled, metav1.ConditionFalse, v1alpha1.ReasonInstallFailed, "***_X")

	if note := f.lastEvent(); !strings.Contains(note, "***_X") || strings.Contains(note, "hunter2") {
		t.Errorf("the event is %q", note)
	}
}

// TestDeletionPolicy deletes a BundleDeployment that has installed a CustomResourceDefinition, while an object of its kind exists
// that somebody else created.
func TestDeletionPolicy(t *testing.T) {
	for _, policy := range []v1alpha1.DeletionPolicy{v1alpha1.DeletionPolicyUninstall, v1alpha1.DeletionPolicyKeepUsed} {
		t.Run(string(policy), func(t *testing.T) {
			f := newFixture(t)
			group := f.name + ".example.com"
			definition := "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: things." + group + "}\nspec:\n  group: " + group +
				"\n  scope: Cluster\n  names: {kind: Thing, plural: things}\n  versions:\n  - {name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object}}}\n---\n"
			f.create(f.content("1", definition+f.configMap("one", "1")), func(made *v1alpha1.BundleDeployment) { made.Spec.DeletionPolicy = policy })
			f.settle()
			f.wantInstalled()

			theirs := &unstructured.Unstructured{Object: map[string]any{
				"apiVersion": group + "/v1", "kind": "Thing", "metadata": map[string]any{"name": "theirs"},
			}}
			if err := f.Create(t.Context(), theirs); err != nil {
				t.Fatal(err)
			}

			if err := f.Delete(t.Context(), f.deployment()); err != nil {
				t.Fatal(err)
			}

			f.settle()

			if f.value(f, "one") != "" {
				t.Error("an object remains")
			}

			err := f.Get(t.Context(), client.ObjectKeyFromObject(theirs), theirs)
			if kept := err == nil; kept != (policy == v1alpha1.DeletionPolicyKeepUsed) {
				t.Errorf("the object of somebody else: %v", err)
			}

			secrets := &corev1.SecretList{}
			if err := f.List(t.Context(), secrets, client.InNamespace(metav1.NamespaceSystem)); err != nil && !apierrors.IsNotFound(err) {
				t.Fatal(err)
			}

			for _, secret := range secrets.Items {
				if policy == v1alpha1.DeletionPolicyUninstall && strings.HasSuffix(secret.Name, f.name) {
					t.Errorf("the inventory remains: %s", secret.Name)
				}
			}
		})
	}
}

// TestOperatorOutlivesItsObjects removes an operator together with an object whose finalizer only the operator removes. The operator stays until
// the object is gone.
func TestOperatorOutlivesItsObjects(t *testing.T) {
	deletion := func(policy v1alpha1.DeletionPolicy) func(*fixture) {
		return func(f *fixture) {
			f.change(func(found *v1alpha1.BundleDeployment) { found.Spec.DeletionPolicy = policy })

			if err := f.Delete(f.Context(), f.deployment()); err != nil {
				f.Fatal(err)
			}
		}
	}

	for name, remove := range map[string]func(*fixture){
		"Uninstall": deletion(v1alpha1.DeletionPolicyUninstall),
		"KeepUsed":  deletion(v1alpha1.DeletionPolicyKeepUsed),
		"upgrade":   func(f *fixture) { f.upgrade(f.content("2", f.configMap("one", "1"))) },
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			group := f.name + ".example.com"
			f.create(f.content("1", "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: things."+group+"}\nspec:\n  group: "+group+
				"\n  scope: Cluster\n  names: {kind: Thing, plural: things}\n  versions:\n  - {name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object}}}\n---\n"+
				"apiVersion: "+group+"/v1\nkind: Thing\nmetadata: {name: one, finalizers: [example.com/operator]}\n---\n"+deploymentManifest(f.name)))
			f.settle()
			f.wantInstalled()
			remove(f)

			thing := &unstructured.Unstructured{Object: map[string]any{"apiVersion": group + "/v1", "kind": "Thing", "metadata": map[string]any{"name": "one"}}}
			operator := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: f.name}}

			for range 4 {
				if _, err := f.pass(); err != nil {
					t.Fatal(err)
				}

				f.unpack()
			}

			if err := f.Get(t.Context(), client.ObjectKeyFromObject(thing), thing); err != nil || thing.GetDeletionTimestamp() == nil {
				t.Errorf("the object is not being deleted: %v", err)
			}

			if err := f.Get(t.Context(), client.ObjectKeyFromObject(operator), operator); err != nil {
				t.Errorf("the operator is gone before its object: %v", err)
			}

			thing.SetFinalizers(nil)

			if err := f.Update(t.Context(), thing); err != nil {
				t.Fatal(err)
			}

			// The API server takes seconds to remove a definition whose objects were being deleted.
			bundletest.Eventually(t, func() string {
				if _, err := f.pass(); err != nil {
					t.Fatal(err)
				}

				if err := f.Get(t.Context(), client.ObjectKeyFromObject(operator), operator); !apierrors.IsNotFound(err) {
					return fmt.Sprintf("the operator remains: %v", err)
				}

				return ""
			})
		})
	}
}
