package applier

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"

	"github.com/fluxcd/pkg/ssa/utils"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/environment-broker/environment-broker/internal/failure"
	"github.com/environment-broker/environment-broker/provisioner/installation"
	"github.com/environment-broker/environment-broker/provisioner/installation/manifest"
)

// namespaceKey is the value that every component has.
const namespaceKey = "namespace"

// digestOf tells one content of a component from another. It is kept in a Secret: whoever can read it can read the values as well.
func digestOf(component installation.Component, files []manifest.File) (string, error) {
	content, err := json.Marshal(struct {
		Namespace string            `json:"namespace"`
		Values    map[string]string `json:"values"`
		Files     []manifest.File   `json:"files"`
	}{component.Namespace, component.Values, files})
	if err != nil {
		return "", fmt.Errorf("digest of component %s: %w", component.Name, err)
	}
	sum := sha256.Sum256(content)
	return hex.EncodeToString(sum[:]), nil
}

// render returns the objects of a component as they are applied. unknown says which kind the cluster does not know yet.
func (w *work) render(ctx context.Context, component installation.Component, files []manifest.File,
) (objects []*unstructured.Unstructured, unknown string, err error) {
	values := maps.Clone(component.Values)
	if values == nil {
		values = map[string]string{}
	}
	values[namespaceKey] = component.Namespace
	objects, err = manifest.Objects(files, values)
	if err != nil {
		return nil, "", failure.Wrap(failure.Permanent, err, "the manifests of component %q cannot be read", component.Name).
			Because(failure.ReasonInternal, failure.ComponentProvisioner)
	}
	defined := definitions(objects)
	namespaces := map[string]bool{}
	for _, object := range objects {
		namespaced, err := w.namespaced(object, defined)
		switch {
		case meta.IsNoMatchError(err):
			return nil, fmt.Sprintf("the cluster does not know the kind %s yet", object.GroupVersionKind()), nil
		case err != nil:
			return nil, "", err
		case !namespaced:
			object.SetNamespace("")
		case object.GetNamespace() == "":
			object.SetNamespace(component.Namespace)
		}
		if utils.IsNamespace(object) {
			namespaces[object.GetName()] = true
		}
	}
	if !namespaces[component.Namespace] {
		own, err := w.ownNamespace(ctx, component.Namespace)
		if err != nil {
			return nil, "", err
		}
		if own != nil {
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
	}
	return objects, "", nil
}

// definitions lists the kinds that the objects themselves define, and whether they live in namespaces.
func definitions(objects []*unstructured.Unstructured) map[schema.GroupKind]bool {
	defined := map[schema.GroupKind]bool{}
	for _, object := range objects {
		if !utils.IsCRD(object) {
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

// ownNamespace returns the namespace of a component that does not bring it. One that somebody else has made stays his: then it is nil.
func (w *work) ownNamespace(ctx context.Context, name string) (*unstructured.Unstructured, error) {
	found := &corev1.Namespace{}
	err := w.client.Get(ctx, client.ObjectKey{Name: name}, found)
	if err != nil && !apierrors.IsNotFound(err) {
		return nil, err
	}
	if err == nil && found.Labels[LabelInstallation] != w.runtimeID {
		return nil, nil
	}
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{"name": name},
	}}, nil
}
