package applier

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/environment-broker/environment-broker/internal/failure"
	"github.com/environment-broker/environment-broker/provisioner/installation"
)

// namespaceKey is the value that every component has.
const namespaceKey = "namespace"

// digestOf returns a digest of the content of a component, values included. It is stored in a Secret, next to which the values are readable.
func digestOf(component installation.Component, files []installation.ManifestFile) (string, error) {
	content, err := json.Marshal(struct {
		Namespace string                      `json:"namespace"`
		Values    map[string]string           `json:"values"`
		Files     []installation.ManifestFile `json:"files"`
	}{component.Namespace, component.Values, files})
	if err != nil {
		return "", fmt.Errorf("digest of component %s: %w", component.Name, err)
	}
	sum := sha256.Sum256(content)
	return hex.EncodeToString(sum[:]), nil
}

// rendered is the content of a component.
type rendered struct {
	// objects are applied.
	objects []*unstructured.Unstructured
	// refs are their names, and that of the namespace if it exists already.
	refs []ref
}

// render returns the objects of a component as they are applied. unknown names a kind that the cluster does not serve yet.
func (w *work) render(ctx context.Context, component installation.Component, files []installation.ManifestFile,
) (result rendered, unknown string, err error) {
	values := maps.Clone(component.Values)
	if values == nil {
		values = map[string]string{}
	}
	values[namespaceKey] = component.Namespace
	objects, err := installation.Parse(files, values)
	if err != nil {
		return rendered{}, "", failure.Wrap(failure.Permanent, err, "the manifests of component %q cannot be read", component.Name).
			WithReason(failure.ReasonInternal, failure.ComponentProvisioner)
	}
	defined := definitions(objects)
	namespaces := map[string]bool{}
	var refs []ref
	for _, object := range objects {
		namespaced, err := w.namespaced(object, defined)
		switch {
		case meta.IsNoMatchError(err):
			return rendered{}, fmt.Sprintf("the cluster does not serve the kind %s yet", object.GroupVersionKind()), nil
		case err != nil:
			return rendered{}, "", err
		case !namespaced:
			object.SetNamespace("")
		case object.GetNamespace() == "":
			object.SetNamespace(component.Namespace)
		}
		if refOf(object).isNamespace() {
			namespaces[object.GetName()] = true
		}
	}
	if !namespaces[component.Namespace] {
		own, there, err := w.ownNamespace(ctx, component.Namespace)
		switch {
		case err != nil:
			return rendered{}, "", err
		case there:
			refs = append(refs, refOf(own))
		case own != nil:
			objects = append(objects, own)
		}
	}
	for _, object := range objects {
		labels := object.GetLabels()
		if labels == nil {
			labels = map[string]string{}
		}
		labels[LabelInstallation] = w.runtimeID
		object.SetLabels(labels)
		refs = append(refs, refOf(object))
	}
	return rendered{objects, refs}, "", nil
}

// definitions lists the kinds that the objects themselves define, and whether they live in namespaces.
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

// ownNamespace returns the namespace of a component whose manifests lack it, and whether it exists already: another component may have
// created it, with fields that must stay. It returns nil for a namespace of somebody else.
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
	case found.Labels[LabelInstallation] != w.runtimeID:
		return nil, false, nil
	default:
		return own, true, nil
	}
}
