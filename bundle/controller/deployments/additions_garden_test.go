//go:build garden

package deployments_test

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/environment-broker/environment-broker/bundle/api/v1alpha1"
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
