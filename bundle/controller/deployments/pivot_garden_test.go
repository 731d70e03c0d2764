//go:build garden

package deployments_test

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/environment-broker/environment-broker/bundle/api/v1alpha1"
	"github.com/environment-broker/environment-broker/bundle/bundletest"
)

// TestPivot installs a Bundle, upgrades it and removes it. The previous Bundle is deleted after the new one is installed.
func TestPivot(t *testing.T) {
	f := newFixture(t)
	f.create(f.content("1", f.configMap("stays", "1")+f.configMap("goes", "1")))

	if _, err := f.pass(); err != nil {
		t.Fatal(err)
	}

	f.want(v1alpha1.TypeHasValidBundle, metav1.ConditionTrue, v1alpha1.ReasonUnpackPending, "")
	f.want(v1alpha1.TypeInstalled, metav1.ConditionFalse, v1alpha1.ReasonInstallPending, "")
	f.want(v1alpha1.TypeHealthy, metav1.ConditionFalse, v1alpha1.ReasonInstallationStatusFalse, "")
	f.settle()
	f.wantInstalled()
	f.want(v1alpha1.TypeHealthy, metav1.ConditionTrue, v1alpha1.ReasonHealthy, "")

	former := f.deployment().Status.ActiveBundle
	f.upgrade(f.content("2", f.configMap("stays", "2")+f.configMap("comes", "2")))

	if _, err := f.pass(); err != nil || f.deployment().Status.ActiveBundle != former || f.value(f, "stays") != "1" {
		t.Errorf("the Bundle is replaced before the other one is unpacked: %v", err)
	}

	f.written()
	f.settle()
	f.wantInstalled()

	if f.value(f, "stays") != "2" || f.value(f, "comes") != "2" || f.value(f, "goes") != "" {
		t.Errorf("stays %q, comes %q, goes %q", f.value(f, "stays"), f.value(f, "comes"), f.value(f, "goes"))
	}

	order := f.written()
	status := slices.Index(order, "PUT /apis/core.rukpak.io/v1alpha1/bundledeployments/"+f.name+"/status")
	deleted := slices.Index(order, "DELETE /apis/core.rukpak.io/v1alpha1/bundles/"+former)

	if applied := slices.IndexFunc(order, func(call string) bool { return strings.HasSuffix(call, "-comes") }); applied < 0 || status < 0 || deleted < 0 ||
		slices.Index(order[applied:], "PUT /apis/core.rukpak.io/v1alpha1/bundledeployments/"+f.name+"/status") > deleted-applied {
		t.Errorf("the writes are in the wrong order: %v", order)
	}

	f.remove()

	if f.value(f, "stays") != "" || len(f.bundles()) != 0 {
		t.Error("objects or Bundles remain")
	}
}

// TestSixBadTemplates sets a valid template after six invalid ones. rukpak would stop at the fifth (regression 4).
func TestSixBadTemplates(t *testing.T) {
	f := newFixture(t)
	f.create(f.content("1", f.configMap("one", "1")))
	f.settle()

	active := f.deployment().Status.ActiveBundle

	for i := range 6 {
		f.upgrade(f.content(fmt.Sprintf("bad-%d", i), ""))
		f.settle()
		f.want(v1alpha1.TypeHasValidBundle, metav1.ConditionFalse, v1alpha1.ReasonUnpackFailed, "no such archive")
		f.want(v1alpha1.TypeInstalled, metav1.ConditionTrue, v1alpha1.ReasonInstallPending, active)

		if found := f.deployment().Status.ActiveBundle; found != active || f.value(f, "one") != "1" || len(f.bundles()) > 5 {
			t.Errorf("bad template %d: the active Bundle is %q, the value %q, and there are %d Bundles", i, found, f.value(f, "one"), len(f.bundles()))
		}
	}

	f.upgrade(f.content("2", f.configMap("one", "2")))
	f.settle()
	f.wantInstalled()

	if f.value(f, "one") != "2" {
		t.Error("the good template is not installed")
	}
}

// TestDeletedBundles deletes Bundles and BundleDeployments at the wrong moments (regression 5).
func TestDeletedBundles(t *testing.T) {
	f := newFixture(t)
	f.create(f.content("1", f.configMap("one", "1")))
	f.settle()

	deleteBundle := func(name string) {
		t.Helper()

		if err := f.Delete(t.Context(), &v1alpha1.Bundle{ObjectMeta: metav1.ObjectMeta{Name: name}}); err != nil {
			t.Fatal(err)
		}
	}

	deleteBundle(f.deployment().Status.ActiveBundle)
	f.settle()
	f.wantInstalled()

	// The provisioner of its class needs time to clean up, so the active Bundle is being deleted for a while.
	active := f.bundles()[0]
	active.Finalizers = []string{"example.com/clean-up"}

	if err := f.Update(t.Context(), &active); err != nil {
		t.Fatal(err)
	}

	deleteBundle(active.Name)
	f.settle()
	f.want(v1alpha1.TypeHasValidBundle, metav1.ConditionTrue, v1alpha1.ReasonUnpackPending, active.Name+" is being deleted and will be created again")
	f.want(v1alpha1.TypeInstalled, metav1.ConditionTrue, v1alpha1.ReasonInstallPending, active.Name+" stays installed")

	if found := f.bundles(); len(found) != 1 || found[0].UID != active.UID || f.deployment().Status.ActiveBundle != active.Name || f.value(f, "one") != "1" {
		t.Errorf("while the active Bundle is being deleted, the Bundles are %+v, the status %+v", found, f.deployment().Status)
	}

	bundletest.Delete(t, f.Client, &active)
	f.settle()
	f.wantInstalled()

	if f.bundles()[0].UID == active.UID {
		t.Error("the Bundle is not created again")
	}

	// During the pivot, somebody deletes first the desired Bundle, then the active one.
	f.upgrade(f.content("2", f.configMap("one", "2")))

	if _, err := f.pass(); err != nil {
		t.Fatal(err)
	}

	former := f.deployment().Status.ActiveBundle
	for _, bundle := range f.bundles() {
		if bundle.Name != former {
			deleteBundle(bundle.Name)
		}
	}

	if _, err := f.pass(); err != nil {
		t.Fatal(err)
	}

	deleteBundle(former)
	f.settle()
	f.wantInstalled()

	// The BundleDeployment is deleted during a pivot, and created again with other content.
	f.upgrade(f.content("3", f.configMap("three", "3")))

	if _, err := f.pass(); err != nil {
		t.Fatal(err)
	}

	f.remove()

	if f.value(f, "one") != "" || len(f.bundles()) != 0 {
		t.Error("objects or Bundles remain")
	}

	f.create(f.content("4", f.configMap("four", "4")))
	f.settle()
	f.wantInstalled()

	if f.value(f, "three") != "" || f.value(f, "four") != "4" {
		t.Error("the BundleDeployment has stale content")
	}

	// Somebody forces the removal of a BundleDeployment that cannot be installed, and creates it again before the controller has noticed.
	// The new one does not inherit the failures.
	f.remove()

	invalid := f.content("5", "apiVersion: v1\nkind: Service\nmetadata: {name: "+f.name+", namespace: default}\nspec: {ports: [{port: 99999}]}\n")
	f.create(invalid)
	f.settle()
	f.want(v1alpha1.TypeInstalled, metav1.ConditionFalse, v1alpha1.ReasonInstallFailed, "rejects Service")
	bundletest.Delete(t, f.Client, f.deployment())

	f.contents[invalid.HTTP.URL] = f.configMap("five", "5")
	f.create(invalid)
	f.settle()
	f.wantInstalled()
}

// TestReplacedBundle changes the source of the active Bundle, whose template stays the same, and deletes the Bundle. The Bundle that is created
// again is checked and installed like any other Bundle with other content.
func TestReplacedBundle(t *testing.T) {
	f := newFixture(t)
	group := strings.ReplaceAll(f.name, "-", "") + ".example.com"
	definition := func(properties string) string {
		return "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: things." + group + "}\nspec:\n  group: " + group +
			"\n  scope: Namespaced\n  names: {kind: Thing, plural: things}\n  versions:\n  - {name: v1, served: true, storage: true, " +
			"schema: {openAPIV3Schema: {type: object, properties: {" + properties + "}}}}\n---\n"
	}
	source := f.content("1", definition("a: {type: string}, b: {type: string}")+f.configMap("one", "1"))
	replace := func(content string) []v1alpha1.Version {
		t.Helper()

		f.contents[source.HTTP.URL] = content
		if err := f.Delete(t.Context(), &f.bundles()[0]); err != nil {
			t.Fatal(err)
		}

		return f.settle().Status.History
	}

	f.create(source)
	f.settle()
	f.wantInstalled()

	history := replace(definition("a: {type: string}, b: {type: string}") + f.configMap("one", "2"))
	f.wantInstalled()

	if got := f.value(f, "one"); got != "2" || len(history) != 2 || history[0].Digest != f.bundles()[0].Status.Digest {
		t.Errorf("the value is %q, the history %+v", got, history)
	}

	// The definition is checked for unsafe changes, too.
	history = replace(definition("a: {type: string}") + f.configMap("one", "3"))
	f.want(v1alpha1.TypeInstalled, metav1.ConditionFalse, v1alpha1.ReasonUpgradeFailed, "field .b: the field is removed")

	if got := f.value(f, "one"); got != "2" || len(history) != 2 {
		t.Errorf("after an unsafe change, the value is %q, the history %+v", got, history)
	}
}

// TestInterruptedPivot interrupts a pivot that waits for the removal of a former object. The interruption does not count toward its timeout, so
// the pivot continues afterwards and is not undone.
func TestInterruptedPivot(t *testing.T) {
	unreachable := regexp.MustCompile(`server: \S+`).ReplaceAll(targetKubeconfig, []byte("server: https://127.0.0.1:1"))
	spec := func(change func(*v1alpha1.BundleDeploymentSpec, bool)) func(*fixture, bool) {
		return func(f *fixture, on bool) {
			f.change(func(found *v1alpha1.BundleDeployment) { change(&found.Spec, on) })
		}
	}
	secret := func(content []byte) func(*fixture, bool) {
		return func(f *fixture, on bool) { f.kubeconfig(map[bool][]byte{true: content, false: targetKubeconfig}[on]) }
	}

	for name, interrupt := range map[string]func(f *fixture, on bool){
		"suspension":                spec(func(spec *v1alpha1.BundleDeploymentSpec, on bool) { spec.Suspend = on }),
		"dry run":                   spec(func(spec *v1alpha1.BundleDeploymentSpec, on bool) { spec.DryRun = on }),
		"outage":                    secret(unreachable),
		"Secret without kubeconfig": secret(nil),
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			there := f.targetClient()
			f.kubeconfig(targetKubeconfig)
			f.create(f.content("1", f.configMap("one", "1")+f.slowConfigMap("two")), f.onTarget)
			f.settle()
			f.wantInstalled()
			f.upgrade(f.content("2", f.configMap("one", "2")))
			f.removing()

			for _, on := range []bool{true, false} {
				interrupt(f, on)

				if _, err := f.pass(); err != nil {
					t.Fatal(err)
				}

				if on {
					f.advance(time.Hour)
				}
			}

			f.want(v1alpha1.TypeInstalled, metav1.ConditionTrue, v1alpha1.ReasonInstallPending, "removing objects of earlier bundles")

			if got := f.value(there, "one"); got != "2" {
				t.Errorf("the pivot is undone: the value is %q", got)
			}
		})
	}
}

// TestDefinitionAndItsObject installs a definition and an object of its kind in one Bundle, and keeps the definition while an object
// that somebody else created exists (regression 9).
func TestDefinitionAndItsObject(t *testing.T) {
	f := newFixture(t)
	group := strings.ReplaceAll(f.name, "-", "") + ".example.com"
	definition := "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: things." + group + "}\nspec:\n  group: " + group +
		"\n  scope: Namespaced\n  names: {kind: Thing, plural: things}\n  versions:\n  - {name: v1, served: true, storage: true, schema: {openAPIV3Schema: " +
		"{type: object, x-kubernetes-preserve-unknown-fields: true}}}\n---\n"
	thing := "apiVersion: " + group + "/v1\nkind: Thing\nmetadata: {name: one, namespace: default}\n---\n"

	f.create(f.content("1", thing+definition))
	f.settle()
	f.wantInstalled()

	theirs := &unstructured.Unstructured{}
	theirs.SetGroupVersionKind(schema.GroupVersionKind{Group: group, Version: "v1", Kind: "Thing"})
	theirs.SetNamespace("default")
	theirs.SetName("theirs")

	if err := f.Create(t.Context(), theirs); err != nil {
		t.Fatal(err)
	}

	f.upgrade(f.content("2", f.configMap("one", "1")))
	f.settle()
	f.want(v1alpha1.TypeInstalled, metav1.ConditionTrue, v1alpha1.ReasonInstallationSucceeded, "things."+group+" is kept: Thing default/theirs still exists")

	if err := f.Get(t.Context(), client.ObjectKeyFromObject(theirs), theirs); err != nil {
		t.Errorf("the object of somebody else: %v", err)
	}
}

// TestUnservedVersion installs an object with a version that the definition in the same Bundle does not have. The conditions name the
// kind, and do not say that the cluster cannot be reached. The installation fails after the timeout, and succeeds with the right version.
func TestUnservedVersion(t *testing.T) {
	f := newFixture(t)
	group := strings.ReplaceAll(f.name, "-", "") + ".example.com"
	definition := "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: things." + group + "}\nspec:\n  group: " + group +
		"\n  scope: Namespaced\n  names: {kind: Thing, plural: things}\n  versions:\n  - {name: v1, served: true, storage: true, schema: {openAPIV3Schema: " +
		"{type: object, x-kubernetes-preserve-unknown-fields: true}}}\n---\n"
	thing := "apiVersion: " + group + "/v1\nkind: Thing\nmetadata: {name: one, namespace: default}\n---\n"
	want := "the cluster does not serve the kind Thing of " + group + "/v2"

	f.create(f.content("1", strings.Replace(thing, "/v1", "/v2", 1)+definition))
	f.await("the condition does not name the kind", func() bool {
		if _, err := f.pass(); err != nil {
			t.Fatal(err)
		}

		f.unpack()

		installed := meta.FindStatusCondition(f.deployment().Status.Conditions, v1alpha1.TypeInstalled)
		if installed.Status == metav1.ConditionUnknown {
			t.Fatalf("the cluster counts as unreachable: %+v", installed)
		}

		return strings.Contains(installed.Message, want)
	})

	f.advance(6 * time.Minute)

	if _, err := f.pass(); err != nil {
		t.Fatal(err)
	}

	f.want(v1alpha1.TypeInstalled, metav1.ConditionFalse, v1alpha1.ReasonInstallFailed, want)
	f.upgrade(f.content("2", thing+definition))
	f.settle()
	f.wantInstalled()
}

// TestCollision installs an object with two BundleDeployments. The second one is installed when the first one is gone (regression 10).
func TestCollision(t *testing.T) {
	first, second := newFixture(t), newFixture(t)
	first.create(first.content("1", first.configMap("shared", "1")))
	first.settle()

	second.create(second.content("1", first.configMap("shared", "2")))
	second.settle()
	second.want(v1alpha1.TypeInstalled, metav1.ConditionFalse, v1alpha1.ReasonInstallFailed,
		"ConfigMap default/"+first.name+"-shared exists already and belongs to BundleDeployment "+first.name)
	second.want(v1alpha1.TypeHealthy, metav1.ConditionFalse, v1alpha1.ReasonInstallationStatusFalse, "")

	if first.value(first, "shared") != "1" || second.deployment().Status.ActiveBundle != "" {
		t.Error("the second one changes the object")
	}

	first.remove()
	second.advance(time.Minute)
	second.settle()
	second.wantInstalled()

	if first.value(first, "shared") != "2" {
		t.Error("the object does not belong to the second one")
	}
}

// TestUpgradeThatFails upgrades to a Bundle with an object that is rejected only after others are applied. The former objects are restored, and
// the controller does not repeat the attempt at once (regression 11).
func TestUpgradeThatFails(t *testing.T) {
	f := newFixture(t)
	f.create(f.content("1", f.configMap("a", "1")+f.configMap("b", "1")))
	f.settle()

	active := f.deployment().Status.ActiveBundle
	// The ClusterRole is applied in the first wave; the Service is rejected in the second one.
	role := "apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata: {name: " + f.name + "}\nrules: []\n---\n"
	invalid := "apiVersion: v1\nkind: Service\nmetadata: {name: " + f.name + ", namespace: default}\nspec: {ports: [{port: 99999}]}\n"
	f.written()
	f.upgrade(f.content("2", role+f.configMap("a", "2")+f.configMap("c", "2")+invalid))
	f.settle()
	f.want(v1alpha1.TypeInstalled, metav1.ConditionTrue, v1alpha1.ReasonUpgradeFailed, "rejects Service default/"+f.name)
	f.want(v1alpha1.TypeInstalled, metav1.ConditionTrue, v1alpha1.ReasonUpgradeFailed, "Bundle "+active+" stays installed")

	if found := f.deployment().Status.ActiveBundle; found != active || f.value(f, "a") != "1" || f.value(f, "b") != "1" || f.value(f, "c") != "" {
		t.Errorf("the active Bundle is %q, a %q, b %q, c %q", found, f.value(f, "a"), f.value(f, "b"), f.value(f, "c"))
	}

	if err := f.Get(t.Context(), client.ObjectKey{Name: f.name}, &rbacv1.ClusterRole{}); !apierrors.IsNotFound(err) {
		t.Errorf("the ClusterRole of the failed Bundle remains: %v", err)
	}

	if !slices.ContainsFunc(f.written(), func(call string) bool { return strings.HasSuffix(call, "/clusterroles/"+f.name) }) {
		t.Error("the ClusterRole was not applied before")
	}

	for range 20 {
		if _, err := f.pass(); err != nil {
			t.Fatal(err)
		}
	}

	if writes := f.written(); len(writes) > 0 {
		t.Errorf("the failed upgrade is repeated at once: %v", writes)
	}

	f.upgrade(f.content("3", f.configMap("a", "3")))
	f.settle()
	f.wantInstalled()
}

// TestUnsafeDefinition upgrades to Bundles whose definition loses a field or gets a limit. Both upgrades end without a change and are not
// repeated; the annotation permits the change.
func TestUnsafeDefinition(t *testing.T) {
	f := newFixture(t)
	group := strings.ReplaceAll(f.name, "-", "") + ".example.com"
	definition := func(annotation, rule string) string {
		return "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: things." + group + ", annotations: {" + annotation + "}}\n" +
			"spec:\n  group: " + group + "\n  scope: Namespaced\n  names: {kind: Thing, plural: things}\n  versions:\n  - {name: v1, served: true, storage: true, " +
			"schema: {openAPIV3Schema: {type: object, properties: {size: {type: integer}, spec: " + rule + "}}}}\n---\n"
	}
	thing := "apiVersion: " + group + "/v1\nkind: Thing\nmetadata: {name: one, namespace: default}\nspec: {a: x}\n---\n"
	lost := "{type: object, properties: {b: {type: string}}}"

	f.create(f.content("1", definition("", "{type: object, properties: {a: {type: string}, b: {type: string}}}")+thing+f.configMap("one", "1")))
	f.settle()
	f.wantInstalled()

	active := f.deployment().Status.ActiveBundle

	for i, row := range []struct{ reason, rule, message string }{
		{"a field goes", lost, "things." + group + ", version v1, field .spec.a: the field is removed"},
		{"a limit is new", "{type: object, maxProperties: 0, properties: {a: {type: string}, b: {type: string}}}", "field .spec: a " +
			"limit is added: maxProperties 0"},
	} {
		f.upgrade(f.content(fmt.Sprintf("unsafe-%d", i), definition("", row.rule)+f.configMap("one", "2")))
		f.settle()
		f.want(v1alpha1.TypeInstalled, metav1.ConditionTrue, v1alpha1.ReasonUpgradeFailed, row.message)

		if found := f.deployment().Status.ActiveBundle; found != active || f.value(f, "one") != "1" {
			t.Errorf("%s: the active Bundle is %q, the value %q", row.reason, found, f.value(f, "one"))
		}

		f.written()

		for range 10 {
			f.advance(time.Hour)

			if _, err := f.pass(); err != nil {
				t.Fatal(err)
			}
		}

		if writes := f.written(); len(writes) > 0 {
			t.Errorf("%s: the attempt is repeated: %v", row.reason, writes)
		}
	}

	f.upgrade(f.content("permitted", definition(`core.rukpak.io/safe-crd-upgrade-validation: "false"`, lost)+f.configMap("one", "3")))
	f.settle()
	f.wantInstalled()

	if f.value(f, "one") != "3" {
		t.Error("the permitted change is not installed")
	}
}
