//go:build garden

package applier_test

import (
	"encoding/base64"
	"fmt"
	"strings"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/environment-broker/environment-broker/internal/clients/applier"
)

// definition returns a manifest of a CustomResourceDefinition. versions are JSON fields of its versions, such as "name: v1, served: true".
func definition(group, kind, scope string, versions ...string) string {
	text := &strings.Builder{}
	_, _ = fmt.Fprintf(text, "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: %[2]ss.%[1]s, annotations: "+
		"{api-approved.kubernetes.io: \"unapproved, a test\"}}\nspec:\n  group: %[1]s\n  scope: %[4]s\n  names: {kind: %[3]s, plural: %[2]ss}\n  versions:\n",
		group, strings.ToLower(kind), kind, scope)

	for _, version := range versions {
		_, _ = fmt.Fprintf(text, "  - {%s, schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}}\n", version)
	}

	return text.String() + "---\n"
}

func (f *fixture) group() string { return f.namespace + ".example.com" }

// custom returns an object of a kind in the group of the test.
func (f *fixture) custom(version, kind, namespace, name string) *unstructured.Unstructured {
	object := &unstructured.Unstructured{Object: map[string]any{"apiVersion": f.group() + "/" + version, "kind": kind}}
	object.SetNamespace(namespace)
	object.SetName(name)

	return object
}

func (f *fixture) exists(object client.Object) bool {
	f.Helper()

	err := f.Get(f.Context(), client.ObjectKeyFromObject(object), object)
	if client.IgnoreNotFound(err) != nil && !meta.IsNoMatchError(err) {
		f.Fatal(err)
	}

	return err == nil
}

// TestClassAndItsDefinition installs objects whose kinds end with Class, which are installed first, although they need an object that
// is also installed first: their definition, or their namespace.
func TestClassAndItsDefinition(t *testing.T) {
	f := newFixture(t)
	owner := applier.BundleDeployment("classes-" + f.namespace)
	class := "apiVersion: " + f.group() + "/v1\nkind: %s\nmetadata: {name: one%s}\n---\n"

	f.apply(owner, definition(f.group(), "LocalClass", "Namespaced", "name: v1, served: true, storage: true"))
	f.apply(owner, definition(f.group(), "LocalClass", "Namespaced", "name: v1, served: true, storage: true")+
		definition(f.group(), "GlobalClass", "Cluster", "name: v1, served: true, storage: true")+
		fmt.Sprintf(class, "GlobalClass", "")+fmt.Sprintf(class, "LocalClass", ", namespace: other-"+f.namespace)+
		"apiVersion: v1\nkind: Namespace\nmetadata: {name: other-"+f.namespace+"}\n")

	if !f.exists(f.custom("v1", "GlobalClass", "", "one")) || !f.exists(f.custom("v1", "LocalClass", "other-"+f.namespace, "one")) {
		t.Error("an object is missing")
	}
}

// TestDefinitionWithUnservedStorage verifies that a definition is kept while objects of its kind exist, even if the cluster does not
// serve the version in which it stores them.
func TestDefinitionWithUnservedStorage(t *testing.T) {
	f := newFixture(t)
	owner := applier.BundleDeployment("unserved-" + f.namespace)
	f.apply(owner, definition(f.group(), "Thing", "Cluster", "name: v1, served: true, storage: false", "name: v2, served: false, storage: true"))

	theirs := f.custom("v1", "Thing", "", "theirs")
	if err := f.Create(t.Context(), theirs); err != nil {
		t.Fatal(err)
	}

	f.apply(owner, configMap("one", "1"))
	f.until(func() (applier.Progress, error) { return f.applier.RemoveUnused(t.Context(), f.cluster, owner) })

	if !f.exists(theirs) || theirs.GetDeletionTimestamp() != nil {
		t.Error("the definition was removed together with an object of somebody else")
	}

	f.remove(owner)
}

// TestObjectInFormerVersion verifies that an object is removed after the cluster has stopped to serve the version with which it was
// installed.
func TestObjectInFormerVersion(t *testing.T) {
	f := newFixture(t)
	both := definition(f.group(), "Thing", "Cluster", "name: v1, served: true, storage: false", "name: v2, served: true, storage: true")
	former := definition(f.group(), "Thing", "Cluster", "name: v1, served: false, storage: false", "name: v2, served: true, storage: true")
	thing := "apiVersion: " + f.group() + "/v1\nkind: Thing\nmetadata: {name: one}\n"

	definitions, things := applier.BundleDeployment("definitions-"+f.namespace), applier.BundleDeployment("things-"+f.namespace)
	for reason, remove := range map[string]func(){
		"upgrade":        func() { f.apply(things, configMap("one", "1")) },
		"uninstallation": func() { f.remove(things) },
	} {
		f.apply(definitions, both)
		f.apply(things, thing)
		f.apply(definitions, former)
		f.until(func() (applier.Progress, error) {
			return applier.Progress{Done: !f.exists(f.custom("v1", "Thing", "", "one"))}, nil
		})

		if remaining, err := f.applier.Remaining(t.Context(), f.cluster, things); err != nil || len(remaining) != 1 {
			t.Errorf("%s: the remaining objects are %v, %v", reason, remaining, err)
		}

		differences, err := f.applier.Compare(t.Context(), f.cluster, things, f.content(configMap("one", "1")))
		if err != nil || len(differences) != 2 || differences[1].Object != "Thing one" || differences[1].Action != applier.ActionDelete {
			t.Errorf("%s: the differences are %+v, %v", reason, differences, err)
		}

		remove()

		if f.exists(f.custom("v2", "Thing", "", "one")) {
			t.Errorf("%s: the object remains", reason)
		}

		f.remove(things)
	}

	f.remove(definitions)
}

// TestSecretKeys verifies that a key that stringData of a Secret no longer contains is removed from the cluster, also from a Secret that an
// earlier release of the applier has applied.
func TestSecretKeys(t *testing.T) {
	f := newFixture(t)
	owner := applier.BundleDeployment("secret-" + f.namespace)
	manifest := func(values string) string {
		return "apiVersion: v1\nkind: Secret\nmetadata: {name: one}\ndata: {encoded: YQ==}\nstringData: {" + values + "}\n"
	}
	keys := func(want string) {
		t.Helper()

		found := &corev1.Secret{}
		if err := f.Get(t.Context(), client.ObjectKey{Namespace: f.namespace, Name: "one"}, found); err != nil {
			t.Fatal(err)
		}

		if got := fmt.Sprintf("%s", found.Data); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}

	f.apply(owner, manifest("user: u, password: former"))
	keys("map[encoded:a password:former user:u]")
	f.apply(owner, manifest("user: u, encoded: b"))
	keys("map[encoded:b user:u]")

	former := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(manifest("user: u, password: former")), &former.Object); err != nil {
		t.Fatal(err)
	}

	former.SetNamespace(f.namespace)
	former.SetLabels(map[string]string{applier.LabelOwnerKind: "BundleDeployment", applier.LabelOwnerName: "secret-" + f.namespace})

	if err := f.Apply(t.Context(), client.ApplyConfigurationFromUnstructured(former), client.FieldOwner("core.rukpak.io/secret-"+f.namespace), client.ForceOwnership); err != nil {
		t.Fatal(err)
	}

	f.apply(owner, manifest("user: u, password: former"))
	f.apply(owner, manifest("user: u"))
	keys("map[encoded:a user:u]")
	f.remove(owner)
}

// TestCustomKindsOfKubernetesGroups removes an object of a custom kind, and an object that stands for its operator. The operator must stay until
// it has removed the finalizer of the custom object, even if the group has the same suffix as groups of Kubernetes, as that of the Gateway API.
func TestCustomKindsOfKubernetesGroups(t *testing.T) {
	f := newFixture(t)
	group := f.namespace + ".networking.k8s.io"
	definitions, owner := applier.BundleDeployment("definitions-"+f.namespace), applier.BundleDeployment("operator-"+f.namespace)

	f.apply(definitions, definition(group, "Thing", "Cluster", "name: v1, served: true, storage: true"))
	f.apply(owner, configMap("operator", "1")+"apiVersion: "+group+"/v1\nkind: Thing\nmetadata: {name: one, finalizers: [example.com/operator]}\n")

	progress, err := f.applier.Remove(t.Context(), f.cluster, owner)
	if err != nil || progress.Done || f.data("operator") == nil {
		t.Errorf("got %+v, %v, the operator is %v", progress, err, f.data("operator"))
	}

	thing := &unstructured.Unstructured{Object: map[string]any{"apiVersion": group + "/v1", "kind": "Thing", "metadata": map[string]any{"name": "one"}}}
	if !f.exists(thing) || thing.GetDeletionTimestamp() == nil {
		t.Errorf("the object is %+v", thing)
	}

	thing.SetFinalizers(nil)

	if err := f.Update(t.Context(), thing); err != nil {
		t.Fatal(err)
	}

	f.remove(owner)
	f.remove(definitions)
}

// TestAggregatedClusterRole verifies that an apply keeps the rules that Kubernetes writes into a ClusterRole with an aggregation rule.
// Otherwise, the applier and Kubernetes would undo each other's changes.
func TestAggregatedClusterRole(t *testing.T) {
	f := newFixture(t)
	owner := applier.BundleDeployment("aggregated-" + f.namespace)
	manifest := func(rules string) string {
		return "apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata: {name: " + f.namespace + "}\n" +
			"aggregationRule: {clusterRoleSelectors: [{matchLabels: {aggregate: it}}]}\nrules: [" + rules + "]\n"
	}

	f.apply(owner, manifest(""))

	written := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(manifest("{apiGroups: [''], resources: [pods], verbs: [get]}")), &written.Object); err != nil {
		t.Fatal(err)
	}

	unstructured.RemoveNestedField(written.Object, "aggregationRule")

	if err := f.Apply(t.Context(), client.ApplyConfigurationFromUnstructured(written), client.FieldOwner("clusterrole-aggregation-controller"), client.ForceOwnership); err != nil {
		t.Fatal(err)
	}

	before := written.GetResourceVersion()

	for _, rules := range []string{"", "{apiGroups: [''], resources: [secrets], verbs: [get]}"} {
		f.apply(owner, manifest(rules))

		found := &rbacv1.ClusterRole{}
		if err := f.Get(t.Context(), client.ObjectKey{Name: f.namespace}, found); err != nil {
			t.Fatal(err)
		}

		if len(found.Rules) != 1 || found.Rules[0].Resources[0] != "pods" || found.ResourceVersion != before {
			t.Errorf("with the rules [%s]: got %+v, version %s after %s", rules, found.Rules, found.ResourceVersion, before)
		}
	}

	f.remove(owner)
}

// TestInjectedCABundle verifies that an apply keeps the CA bundle that a controller writes into a webhook configuration, if the manifest
// has only a placeholder for it.
func TestInjectedCABundle(t *testing.T) {
	f := newFixture(t)
	owner := applier.BundleDeployment("injected-" + f.namespace)
	manifest := func(bundle string) string {
		return "apiVersion: admissionregistration.k8s.io/v1\nkind: ValidatingWebhookConfiguration\nmetadata: {name: " + f.namespace + "}\nwebhooks:\n" +
			"- name: one.example.com\n  sideEffects: None\n  admissionReviewVersions: [v1]\n" +
			"  rules: [{apiGroups: [" + f.group() + "], apiVersions: [v1], operations: [CREATE], resources: [things]}]\n" +
			"  clientConfig: {service: {namespace: " + f.namespace + ", name: one}, caBundle: " + bundle + "}\n"
	}

	f.apply(owner, manifest("Cg=="))

	authority := base64.StdEncoding.EncodeToString(api.CAData)
	injected := &unstructured.Unstructured{}

	if err := yaml.Unmarshal([]byte(manifest(authority)), &injected.Object); err != nil {
		t.Fatal(err)
	}

	if err := f.Apply(t.Context(), client.ApplyConfigurationFromUnstructured(injected), client.FieldOwner("cainjector"), client.ForceOwnership); err != nil {
		t.Fatal(err)
	}

	f.apply(owner, manifest("Cg=="))

	found := &admissionregistrationv1.ValidatingWebhookConfiguration{}
	if err := f.Get(t.Context(), client.ObjectKey{Name: f.namespace}, found); err != nil {
		t.Fatal(err)
	}

	if string(found.Webhooks[0].ClientConfig.CABundle) != string(api.CAData) {
		t.Errorf("the CA bundle is %q", found.Webhooks[0].ClientConfig.CABundle)
	}

	f.remove(owner)
}
