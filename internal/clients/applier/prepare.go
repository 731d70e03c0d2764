package applier

import (
	"context"
	"fmt"
	"maps"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/environment-broker/environment-broker/internal/failure"
)

// prepared is the content of a part, ready to be applied.
type prepared struct {
	objects []*unstructured.Unstructured
	// refs identify the objects for the inventory. They include the namespace of the part if an earlier call created it.
	refs []ref
}

// prepare reads the objects of a part and sets their namespaces and the owner's labels. If the cluster does not serve the kind of
// an object, unknown is a message about the kind. If another part defines the kind, this is temporary, because the API server
// needs a moment to serve a new kind.
func (w *work) prepare(ctx context.Context, part Part) (result prepared, unknown string, err error) {
	objects, err := part.Source.Objects(ctx)
	if err != nil {
		return prepared{}, "", err
	}
	defined := definitions(objects)
	namespaces := map[string]bool{}
	var refs []ref
	for _, object := range objects {
		dropServerFields(object)
		moveStringData(object)
		dropAggregatedRules(object)
		namespaced, err := w.namespaced(object, defined)
		switch {
		case meta.IsNoMatchError(err):
			return prepared{}, unserved(refOf(object)), nil
		case err != nil:
			return prepared{}, "", err
		case !namespaced:
			object.SetNamespace("")
		case object.GetNamespace() == "":
			object.SetNamespace(part.Namespace)
		}
		if refOf(object).isNamespace() {
			namespaces[object.GetName()] = true
		}
	}
	// Most parts do not contain a manifest of the namespace that they use.
	if !namespaces[part.Namespace] {
		own, there, err := w.ownNamespace(ctx, part.Namespace)
		switch {
		case err != nil:
			return prepared{}, "", err
		case there:
			refs = append(refs, refOf(own))
		case own != nil:
			objects = append(objects, own)
		}
	}
	if w.owner.kind == kindBundleDeployment {
		if objects, err = distinct(objects); err != nil {
			return prepared{}, "", err
		}
	}
	for _, object := range objects {
		labels := map[string]string{}
		maps.Copy(labels, object.GetLabels())
		maps.Copy(labels, w.owner.labels)
		object.SetLabels(labels)
		refs = append(refs, refOf(object))
	}
	return prepared{objects, refs}, "", nil
}

// dropServerFields removes the fields that identify the state of an object on a cluster, from which the manifest was read. With
// these fields, the API server rejects each apply.
func dropServerFields(object *unstructured.Unstructured) {
	for _, field := range []string{"uid", "resourceVersion", "managedFields"} {
		unstructured.RemoveNestedField(object.Object, "metadata", field)
	}
}

// dropAggregatedRules removes the rules of a ClusterRole with an aggregation rule. Manifests often contain an empty list there. Kubernetes
// writes the rules of the selected ClusterRoles into it, and each apply of the list would remove them.
func dropAggregatedRules(object *unstructured.Unstructured) {
	if refOf(object).isClusterRole() && object.Object["aggregationRule"] != nil {
		delete(object.Object, "rules")
	}
}

// distinct returns an error if two objects with different content have the same kind, namespace and name, because each apply of one
// would undo the other. Of equal objects, it keeps one. Formats find such objects only if their manifests name the same namespace.
func distinct(objects []*unstructured.Unstructured) ([]*unstructured.Unstructured, error) {
	seen := map[ref]*unstructured.Unstructured{}
	var kept []*unstructured.Unstructured
	for _, object := range objects {
		this := refOf(object)
		this.Version = ""
		switch first := seen[this]; {
		case first == nil:
			seen[this] = object
			kept = append(kept, object)
		case !equality.Semantic.DeepEqual(first, object):
			return nil, failure.New(failure.Permanent, "the bundle contains %s twice, because objects without a namespace are installed in "+
				"the install namespace, and cluster-scoped objects in none: remove one of them", this).
				WithReason(failure.ReasonInternal, failure.ComponentRuntime)
		}
	}
	return kept, nil
}

// unserved returns a message about an object whose kind the cluster does not serve.
func unserved(object ref) string {
	return fmt.Sprintf("the cluster does not serve the kind %s of %s (yet): check that its CustomResourceDefinition is "+
		"installed and that the apiVersion is correct", object.Kind, object.kind().GroupVersion())
}

// definitions returns the kinds that the part itself defines. The value is true for namespaced kinds. The API server does
// not serve these kinds until their definitions are applied.
func definitions(objects []*unstructured.Unstructured) map[schema.GroupKind]bool {
	defined := map[schema.GroupKind]bool{}
	for _, object := range objects {
		if !refOf(object).isDefinition() {
			continue
		}
		group, _, _ := unstructured.NestedString(object.Object, "spec", "group")
		kind, _, _ := unstructured.NestedString(object.Object, "spec", "names", "kind")
		scope, _, _ := unstructured.NestedString(object.Object, "spec", "scope")
		defined[schema.GroupKind{Group: group, Kind: kind}] = scope != "Cluster"
	}
	return defined
}

// namespaced reports whether the kind of the object is namespaced. defined is the result of definitions. If neither defined nor
// the cluster has the kind, namespaced returns a NoMatch error.
func (w *work) namespaced(object *unstructured.Unstructured, defined map[schema.GroupKind]bool) (bool, error) {
	kind := object.GroupVersionKind()
	if namespaced, known := defined[kind.GroupKind()]; known {
		return namespaced, nil
	}
	mapping, err := w.client.RESTMapper().RESTMapping(kind.GroupKind(), kind.Version)
	if err != nil {
		return false, err
	}
	return mapping.Scope.Name() == meta.RESTScopeNameNamespace, nil
}

// ownNamespace returns the part's namespace, own, if the objects of the part do not contain it. there reports whether this owner
// has already created the namespace. In that case, the namespace must not be applied again, because another part may have set its
// fields. If the namespace exists without the owner's labels, own is nil.
func (w *work) ownNamespace(ctx context.Context, name string) (own *unstructured.Unstructured, there bool, err error) {
	own = &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{"name": name},
	}}
	found := &corev1.Namespace{}
	err = w.client.Get(ctx, client.ObjectKey{Name: name}, found)
	switch {
	case apierrors.IsNotFound(err):
		return own, false, nil
	case err != nil:
		return nil, false, err
	case !w.owner.owns(found.Labels):
		return nil, false, nil
	default:
		return own, true, nil
	}
}
