//go:build garden

package applier_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/environment-broker/environment-broker/internal/clients/applier"
	"github.com/environment-broker/environment-broker/internal/failure"
)

// TestCollision verifies that an owner does not change an object that somebody else has installed, and installs the object once it is free.
func TestCollision(t *testing.T) {
	f := newFixture(t)
	first, second, runtime := applier.BundleDeployment("first"), applier.BundleDeployment("second"), applier.Runtime("r-"+f.namespace)
	f.apply(first, configMap("shared", "1"))

	refused := func(owner applier.Owner, text, want string) {
		t.Helper()

		_, err := f.step(owner, text)
		if !failure.Is(err, failure.Permanent) || !strings.Contains(failure.Of(err).Text, want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
	refused(second, configMap("mine", "2")+configMap("shared", "2"), "ConfigMap "+f.namespace+"/shared exists already and belongs to BundleDeployment first")
	refused(runtime, configMap("shared", "3"), "belongs to BundleDeployment first")

	if f.data("shared")["key"] != "1" || f.data("mine") != nil {
		t.Errorf("the collision changed objects: %v, %v", f.data("shared"), f.data("mine"))
	}

	theirs := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: f.namespace, Name: "theirs"}}
	if err := f.Create(t.Context(), theirs); err != nil {
		t.Fatal(err)
	}

	refused(second, configMap("theirs", "2"), "ConfigMap "+f.namespace+"/theirs exists already and was not installed by BundleDeployment second: delete it")
	f.remove(second)

	if f.data("shared") == nil || f.configMap("theirs") == nil {
		t.Error("the removal deleted objects of others, which the inventory lists")
	}

	f.remove(first)
	f.apply(second, configMap("shared", "2"))
	f.remove(second)
}

// TestNamespaceOfSomebodyElse verifies that the Provisioner adopts namespaces and a BundleDeployment does not.
func TestNamespaceOfSomebodyElse(t *testing.T) {
	f := newFixture(t)
	text := "apiVersion: v1\nkind: Namespace\nmetadata: {name: " + f.namespace + ", labels: {mesh: 'on'}}\n"

	if _, err := f.step(applier.BundleDeployment("b"), text); !failure.Is(err, failure.Permanent) {
		t.Errorf("a BundleDeployment adopts a namespace: %v", err)
	}

	f.apply(applier.Runtime("r-"+f.namespace), text)
}

// TestTamperedObject verifies that an object is repaired after somebody has removed its labels, changed its content or deleted it.
func TestTamperedObject(t *testing.T) {
	f := newFixture(t)
	owner := applier.BundleDeployment("tampered-" + f.namespace)
	f.apply(owner, configMap("one", "1"))

	for name, tamper := range map[string]func(*corev1.ConfigMap) error{
		"labels": func(found *corev1.ConfigMap) error { found.Labels = nil; return f.Update(t.Context(), found) },
		"data":   func(found *corev1.ConfigMap) error { found.Data["key"] = "2"; return f.Update(t.Context(), found) },
		"all":    func(found *corev1.ConfigMap) error { return f.Delete(t.Context(), found) },
	} {
		if err := tamper(f.configMap("one")); err != nil {
			t.Fatal(err)
		}

		f.apply(owner, configMap("one", "1"))

		want := map[string]string{applier.LabelOwnerKind: "BundleDeployment", applier.LabelOwnerName: "tampered-" + f.namespace}
		if found := f.configMap("one"); found == nil || found.Data["key"] != "1" || !cmp.Equal(found.Labels, want) {
			t.Errorf("%s: not repaired: %+v", name, found)
		}
	}

	before := f.configMap("one").ResourceVersion
	inventory := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: "core.rukpak.io.bundledeployment.tampered-" + f.namespace}}

	if err := f.Get(t.Context(), client.ObjectKeyFromObject(inventory), inventory); err != nil {
		t.Fatal(err)
	}

	version := inventory.ResourceVersion
	f.apply(owner, configMap("one", "1"))

	if err := f.Get(t.Context(), client.ObjectKeyFromObject(inventory), inventory); err != nil {
		t.Fatal(err)
	}

	if f.configMap("one").ResourceVersion != before || inventory.ResourceVersion != version {
		t.Error("a check without a difference writes")
	}

	f.remove(owner)
}

// TestScaledReplicas verifies that an apply keeps the number of replicas that a HorizontalPodAutoscaler has set, but no other number.
func TestScaledReplicas(t *testing.T) {
	f := newFixture(t)
	manifest := func(name string, replicas int32, image string) string {
		return fmt.Sprintf("apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: %s}\nspec:\n  replicas: %d\n  selector: {matchLabels: {app: it}}\n"+
			"  template:\n    metadata: {labels: {app: it}}\n    spec: {containers: [{name: c, image: %s}]}\n", name, replicas, image)
	}
	scale := func(manager string) func(*appsv1.Deployment) error {
		return func(found *appsv1.Deployment) error {
			wanted := &autoscalingv1.Scale{Spec: autoscalingv1.ScaleSpec{Replicas: 7}}

			return f.SubResource("scale").Update(t.Context(), found, client.WithSubResourceBody(wanted), client.FieldOwner(manager))
		}
	}

	for name, row := range map[string]struct {
		reason string
		change func(*appsv1.Deployment) error
		// repaired is the number of replicas after an apply with 2 replicas, and upgraded is the number after a later apply with 3.
		repaired, upgraded int32
	}{
		"autoscaler": {"a HorizontalPodAutoscaler has set the number", func(found *appsv1.Deployment) error {
			made := &autoscalingv2.HorizontalPodAutoscaler{
				ObjectMeta: metav1.ObjectMeta{Namespace: found.Namespace, Name: "autoscaler"}, Spec: autoscalingv2.HorizontalPodAutoscalerSpec{
					ScaleTargetRef: autoscalingv2.CrossVersionObjectReference{APIVersion: "apps/v1", Kind: "Deployment", Name: found.Name}, MaxReplicas: 9,
				},
			}

			return errors.Join(f.Create(t.Context(), made), scale("kube-controller-manager")(found))
		}, 7, 7},
		"former": {"a HorizontalPodAutoscaler that was deleted has set the number", scale("kube-controller-manager"), 2, 3},
		"user":   {"a user has set the number", scale("kubectl"), 2, 3},
		"controller": {"the controller of the Deployment reports its status", func(found *appsv1.Deployment) error {
			found.Status.Replicas = 1

			return f.Status().Update(t.Context(), found, client.FieldOwner("kube-controller-manager"))
		}, 2, 3},
	} {
		owner := applier.BundleDeployment(name + "-" + f.namespace)
		deployment := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: f.namespace, Name: name}}
		has := func(replicas int32, image string) {
			t.Helper()

			if err := f.Get(t.Context(), client.ObjectKeyFromObject(deployment), deployment); err != nil {
				t.Fatal(err)
			}

			if got := deployment.Spec; *got.Replicas != replicas || got.Template.Spec.Containers[0].Image != image {
				t.Errorf("%s: %d replicas of %s, want %d of %s", row.reason, *got.Replicas, got.Template.Spec.Containers[0].Image, replicas, image)
			}
		}

		f.apply(owner, manifest(name, 2, "one"))
		has(2, "one")

		if err := row.change(deployment); err != nil {
			t.Fatal(err)
		}

		f.apply(owner, manifest(name, 2, "one"))
		has(row.repaired, "one")
		f.apply(owner, manifest(name, 3, "two"))
		has(row.upgraded, "two")

		before := deployment.ResourceVersion
		f.apply(owner, manifest(name, 3, "two"))
		has(row.upgraded, "two")

		if deployment.ResourceVersion != before {
			t.Errorf("%s: a check without a difference writes", row.reason)
		}

		if problems, err := f.applier.Unhealthy(t.Context(), f.cluster, owner); err != nil || len(problems) != 1 || !strings.HasPrefix(problems[0], "Deployment "+f.namespace+"/"+name+": ") {
			t.Errorf("%s: the health without a controller: %v, %v", row.reason, problems, err)
		}

		f.remove(owner)
	}
}

// TestAutoscalerOfBundle verifies that an apply keeps the number of replicas while the content has a HorizontalPodAutoscaler, even if
// somebody has deleted it, and sets the number when the content omits the HorizontalPodAutoscaler.
func TestAutoscalerOfBundle(t *testing.T) {
	f := newFixture(t)
	owner := applier.BundleDeployment("autoscaled-" + f.namespace)
	deployment := "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: one}\nspec:\n  replicas: 2\n  selector: {matchLabels: {app: it}}\n" +
		"  template:\n    metadata: {labels: {app: it}}\n    spec: {containers: [{name: c, image: i}]}\n---\n"
	autoscaler := "apiVersion: autoscaling/v2\nkind: HorizontalPodAutoscaler\nmetadata: {name: one}\n" +
		"spec: {maxReplicas: 9, scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: one}}\n"

	found := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: f.namespace, Name: "one"}}
	has := func(replicas int32) {
		t.Helper()

		if !f.exists(found) || *found.Spec.Replicas != replicas {
			t.Errorf("got %d replicas, want %d", *found.Spec.Replicas, replicas)
		}
	}

	f.apply(owner, deployment+autoscaler)

	wanted := &autoscalingv1.Scale{Spec: autoscalingv1.ScaleSpec{Replicas: 7}}
	if err := f.SubResource("scale").Update(t.Context(), found, client.WithSubResourceBody(wanted), client.FieldOwner("kube-controller-manager")); err != nil {
		t.Fatal(err)
	}

	if err := f.Delete(t.Context(), &autoscalingv2.HorizontalPodAutoscaler{ObjectMeta: found.ObjectMeta}); err != nil {
		t.Fatal(err)
	}

	f.apply(owner, deployment+autoscaler)
	has(7)
	f.apply(owner, deployment)
	has(2)
	f.remove(owner)
}

func TestCompare(t *testing.T) {
	f := newFixture(t)
	owner := applier.BundleDeployment("compared-" + f.namespace)
	f.apply(owner, configMap("one", "1")+configMap("two", "1")+configMap("three", "1"))

	differences, err := f.applier.Compare(t.Context(), f.cluster, owner, f.content(configMap("one", "2")+configMap("two", "1")+configMap("four", "1")))
	if err != nil {
		t.Fatal(err)
	}

	name := func(name string) string { return "ConfigMap " + f.namespace + "/" + name }
	key := func(object *unstructured.Unstructured) string {
		if object == nil {
			return "no object"
		}

		value, _, _ := unstructured.NestedString(object.Object, "data", "key")

		return value
	}

	var got [][4]string
	for _, found := range differences {
		got = append(got, [4]string{found.Action, found.Object, key(found.Before), key(found.After)})
	}

	want := [][4]string{{"change", name("one"), "1", "2"}, {"create", name("four"), "no object", "1"}, {"delete", name("three"), "", "no object"}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}

	if f.data("one")["key"] != "1" || f.data("three") == nil || f.data("four") != nil {
		t.Error("a comparison changes objects")
	}

	remaining, err := f.applier.Remaining(t.Context(), f.cluster, owner)
	if err != nil || len(remaining) != 3 {
		t.Errorf("remaining: %v, %v", remaining, err)
	}

	f.remove(owner)

	if remaining, err := f.applier.Remaining(t.Context(), f.cluster, owner); err != nil || len(remaining) != 0 {
		t.Errorf("remaining after the removal: %v, %v", remaining, err)
	}
}

// TestChangedFinalizers applies content that differs only in the finalizers or in the owner references of an object.
func TestChangedFinalizers(t *testing.T) {
	f := newFixture(t)
	owner := applier.BundleDeployment("finalizers-" + f.namespace)
	f.apply(owner, configMap("one", "1")+configMap("other", "1"))

	reference := fmt.Sprintf("ownerReferences: [{apiVersion: v1, kind: ConfigMap, name: other, uid: %s}]", f.configMap("other").UID)

	for _, row := range []struct {
		fields                 string
		finalizers, references int
	}{{"finalizers: [example.com/one]", 1, 0}, {"finalizers: [example.com/one, example.com/two]", 2, 0}, {reference, 0, 1}, {"", 0, 0}} {
		text := strings.Replace(configMap("one", "1"), "metadata: {name: one", "metadata: {name: one, "+row.fields, 1)
		f.apply(owner, text+configMap("other", "1"))

		if found := f.configMap("one"); len(found.Finalizers) != row.finalizers || len(found.OwnerReferences) != row.references {
			t.Errorf("with %q: finalizers %v, owner references %v", row.fields, found.Finalizers, found.OwnerReferences)
		}
	}

	f.remove(owner)
}

// TestStrayObject verifies that an object is removed if a replica without a lease created it, and that a copy of an object is not
// removed.
func TestStrayObject(t *testing.T) {
	f := newFixture(t)
	name := "stray-" + f.namespace
	owner := applier.BundleDeployment(name)
	f.apply(owner, configMap("one", "1"))

	for object, manager := range map[string]string{"stray": "core.rukpak.io/" + name, "copy": "kubectl"} {
		made := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "ConfigMap"}}
		made.SetNamespace(f.namespace)
		made.SetName(object)
		made.SetLabels(f.configMap("one").Labels)

		if err := f.Apply(t.Context(), client.ApplyConfigurationFromUnstructured(made), client.FieldOwner(manager)); err != nil {
			t.Fatal(err)
		}
	}

	f.apply(owner, configMap("one", "1"))

	if f.configMap("stray") != nil || f.configMap("copy") == nil || f.configMap("one") == nil {
		t.Errorf("the stray object is %v, the copy %v", f.configMap("stray"), f.configMap("copy"))
	}

	f.remove(owner)
}

// TestMistypedField verifies that a field of a wrong type is a permanent error, although the API server reports an internal error.
func TestMistypedField(t *testing.T) {
	f := newFixture(t)

	text := "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: one}\ndata: {key: 1}\n"
	if _, err := f.step(applier.BundleDeployment("mistyped-"+f.namespace), text); !failure.Is(err, failure.Permanent) {
		t.Errorf("got %v", err)
	}
}

// TestKeep verifies that an object with Helm's annotation stays when the content omits it, and when its owner is removed.
func TestKeep(t *testing.T) {
	f := newFixture(t)
	owner := applier.BundleDeployment("keeps-" + f.namespace)
	kept := "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: NAME, namespace: " + f.namespace + ", annotations: {helm.sh/resource-policy: keep}}\ndata: {key: \"1\"}\n---\n"
	first, second := strings.ReplaceAll(kept, "NAME", "first"), strings.ReplaceAll(kept, "NAME", "second")

	f.apply(owner, first+second+configMap("other", "1"))
	f.apply(owner, second+configMap("other", "1"))
	f.remove(owner)

	if f.data("first") == nil || f.data("second") == nil || f.data("other") != nil {
		t.Errorf("after the removal: %v, %v, %v", f.data("first"), f.data("second"), f.data("other"))
	}

	f.apply(owner, strings.Replace(second, `key: "1"`, `key: "2"`, 1))

	if f.data("second")["key"] != "2" || f.data("first") == nil {
		t.Errorf("the owner has taken over %v, and kept %v", f.data("second"), f.data("first"))
	}
}

// TestNamespaceOfKeptObject verifies that a namespace is not removed while it contains an object with Helm's annotation, although the
// namespace belongs to the owner.
func TestNamespaceOfKeptObject(t *testing.T) {
	f := newFixture(t)
	owner := applier.BundleDeployment("keeps-in-" + f.namespace)
	kept := "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: kept, annotations: {helm.sh/resource-policy: keep}}\ndata: {key: \"1\"}\n---\n"

	for _, part := range []string{"upgraded-", "removed-"} {
		content := f.content(kept + configMap("other", "1"))
		content.Parts[0].Namespace = part + f.namespace
		f.until(func() (applier.Progress, error) { return f.applier.Apply(t.Context(), f.cluster, owner, content) })

		if part == "upgraded-" {
			f.apply(owner, configMap("other", "1"))
		} else {
			f.remove(owner)
		}

		namespace := &corev1.Namespace{}
		if err := f.Get(t.Context(), client.ObjectKey{Name: part + f.namespace}, namespace); err != nil || namespace.DeletionTimestamp != nil {
			t.Errorf("the namespace %s of the kept object is being deleted: %v", part+f.namespace, err)
		}
	}
}

// TestRecreatedKinds verifies that objects with AnnotationRecreate are created again if an immutable field changes. The API server reports
// such changes with different texts.
func TestRecreatedKinds(t *testing.T) {
	f := newFixture(t)
	kind := func(apiVersion, kind, fields string) string {
		return fmt.Sprintf("apiVersion: %s\nkind: %s\nmetadata: {name: recreated-%s, annotations: {%s: \"true\"}}\n%s\n---\n",
			apiVersion, kind, f.namespace, applier.AnnotationRecreate, fields)
	}

	for reason, contents := range map[string][2]string{
		"parameters of a StorageClass": {
			kind("storage.k8s.io/v1", "StorageClass", "provisioner: one\nparameters: {key: one}"),
			kind("storage.k8s.io/v1", "StorageClass", "provisioner: one\nparameters: {key: two}"),
		},
		"provisioner and policy of a StorageClass": {
			kind("storage.k8s.io/v1", "StorageClass", "provisioner: one\nreclaimPolicy: Delete"),
			kind("storage.k8s.io/v1", "StorageClass", "provisioner: two\nreclaimPolicy: Retain"),
		},
		"policy of a StorageClass": {
			kind("storage.k8s.io/v1", "StorageClass", "provisioner: one\nreclaimPolicy: Delete"),
			kind("storage.k8s.io/v1", "StorageClass", "provisioner: one\nreclaimPolicy: Retain"),
		},
		"value of a PriorityClass": {
			kind("scheduling.k8s.io/v1", "PriorityClass", "value: 1"), kind("scheduling.k8s.io/v1", "PriorityClass", "value: 2"),
		},
		"preemption policy of a PriorityClass": {
			kind("scheduling.k8s.io/v1", "PriorityClass", "value: 1"), kind("scheduling.k8s.io/v1", "PriorityClass", "value: 1\npreemptionPolicy: Never"),
		},
		"command of a Pod": {
			kind("v1", "Pod", "spec: {containers: [{name: c, image: i, command: [one]}]}"),
			kind("v1", "Pod", "spec: {containers: [{name: c, image: i, command: [two]}]}"),
		},
		"handler of a RuntimeClass": {kind("node.k8s.io/v1", "RuntimeClass", "handler: one"), kind("node.k8s.io/v1", "RuntimeClass", "handler: two")},
		"type of a Secret":          {kind("v1", "Secret", "type: example.com/one"), kind("v1", "Secret", "type: example.com/two")},
		"service name of a StatefulSet": {
			kind("apps/v1", "StatefulSet", "spec: {serviceName: one, selector: {matchLabels: {a: b}}, template: {metadata: {labels: {a: b}}, spec: {containers: [{name: c, image: i}]}}}"),
			kind("apps/v1", "StatefulSet", "spec: {serviceName: two, selector: {matchLabels: {a: b}}, template: {metadata: {labels: {a: b}}, spec: {containers: [{name: c, image: i}]}}}"),
		},
	} {
		t.Run(reason, func(t *testing.T) {
			f := &fixture{t, f.Client, f.cluster, f.namespace, f.applier}
			owner := applier.BundleDeployment("recreates-" + f.namespace)
			f.apply(owner, contents[0])
			f.apply(owner, contents[1])
			f.remove(owner)
		})
	}
}

// TestKeptObjectIsNotRecreated verifies that a changed immutable field is an error if the object must be kept, and not a wait without end.
func TestKeptObjectIsNotRecreated(t *testing.T) {
	f := newFixture(t)
	owner := applier.BundleDeployment("kept-" + f.namespace)
	secret := "apiVersion: v1\nkind: Secret\nmetadata: {name: one, annotations: {helm.sh/resource-policy: keep, " + applier.AnnotationRecreate + ": \"true\"}}\ntype: "

	f.apply(owner, secret+"example.com/one\n")

	_, err := f.step(owner, secret+"example.com/two\n")
	if !failure.Is(err, failure.Permanent) || !strings.Contains(failure.Of(err).Text, "has the annotation helm.sh/resource-policy: keep; delete it manually") {
		t.Errorf("got %v", err)
	}
}

// TestExportedObject verifies that a manifest that was read from a cluster can be applied. The API server would reject the fields that it
// has set itself with a conflict, which looks temporary.
func TestExportedObject(t *testing.T) {
	f := newFixture(t)
	owner := applier.BundleDeployment("exported-" + f.namespace)

	for reason, fields := range map[string]string{
		"uid": "uid: 5d3a9a3e-8d8f-4c2e-9d4c-0d7f0c1f3a55", "version": `resourceVersion: "1"`,
		"all": `uid: 5d3a9a3e-8d8f-4c2e-9d4c-0d7f0c1f3a55, resourceVersion: "1", generation: 7, creationTimestamp: "2020-01-01T00:00:00Z", ` +
			"managedFields: [{manager: kubectl, operation: Update, apiVersion: v1, fieldsType: FieldsV1, fieldsV1: {'f:data': {}}}]",
	} {
		for _, value := range []string{"1", "2"} {
			text := fmt.Sprintf("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: one, %s}\ndata: {key: %q}\n", fields, value)

			if progress, err := f.step(owner, text); err != nil || !progress.Done || f.data("one")["key"] != value {
				t.Errorf("%s: got %v, %+v, %v", reason, f.data("one"), progress, err)
			}
		}

		f.remove(owner)
	}
}
