package applier

import (
	"context"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	// pageSize is the maximum number of objects in one response.
	pageSize = 50
	// maxPages limits the pages that are read per kind. A namespace with more objects of a kind is not deleted, because it may
	// contain objects of other owners.
	maxPages = 200
)

// reasonToKeepNamespace returns the reason why a namespace must not be deleted, or "". There is a reason if the namespace
// contains an object that would be deleted too, although it has another owner or must be kept, or if it is a standard namespace such
// as kube-system.
func (w *work) reasonToKeepNamespace(ctx context.Context, namespace ref) (string, error) {
	if slices.Contains([]string{metav1.NamespaceDefault, metav1.NamespaceSystem, metav1.NamespacePublic, "kube-node-lease"}, namespace.Name) {
		return "it is a standard namespace of Kubernetes", nil
	}
	object := namespace.bare()
	if err := w.client.Get(ctx, namespace.key(), object); err != nil {
		return "", ignoreGone(err)
	}
	if !w.owner.owns(object.Labels) || object.DeletionTimestamp != nil {
		return "", nil
	}
	kinds, err := w.kinds()
	if err != nil {
		return "", err
	}
	for _, kind := range kinds {
		if reason, err := w.foreignObject(ctx, kind, namespace.Name); err != nil || reason != "" {
			return reason, err
		}
	}
	return "", nil
}

// foreignObject searches the objects of one kind for an object of another owner, or one that must be kept. It returns the reason why the
// namespace must not be deleted, or "".
func (w *work) foreignObject(ctx context.Context, kind schema.GroupVersionKind, namespace string) (string, error) {
	next := ""
	for range maxPages {
		found := &metav1.PartialObjectMetadataList{}
		found.SetGroupVersionKind(kind)
		err := w.client.List(ctx, found, client.InNamespace(namespace), client.Limit(pageSize), client.Continue(next))
		if ignoreGone(err) != nil {
			return "", err
		}
		for _, object := range found.Items {
			if object.Annotations[AnnotationPolicy] == policyKeep && object.DeletionTimestamp == nil {
				return fmt.Sprintf("it contains %s %s, which has the annotation %s: %s", kind.Kind, object.Name, AnnotationPolicy, policyKeep), nil
			}
			if w.isForeign(kind.Kind, object) {
				return fmt.Sprintf("it contains %s %s, which does not belong to %s", kind.Kind, object.Name, w.owner.title), nil
			}
		}
		if next = found.Continue; next == "" {
			return "", nil
		}
	}
	return fmt.Sprintf("it contains more than %d objects of kind %s", maxPages*pageSize, kind.Kind), nil
}

// isForeign reports whether the object does not belong to w.owner. The following objects are never foreign: objects that are
// being deleted, objects that Kubernetes creates in every namespace, and objects with owner references, because controllers
// create those for other objects.
func (w *work) isForeign(kind string, object metav1.PartialObjectMetadata) bool {
	switch {
	case w.owner.owns(object.Labels), object.DeletionTimestamp != nil, len(object.OwnerReferences) > 0:
		return false
	case kind == "ConfigMap" && object.Name == "kube-root-ca.crt", kind == "ServiceAccount" && object.Name == "default":
		return false
	default:
		return true
	}
}

// kinds returns the namespaced kinds that can be listed, except for derived kinds. It fails if an API group does not respond,
// because the group may contain objects of other owners.
func (w *work) kinds() ([]schema.GroupVersionKind, error) {
	asked, err := discovery.NewDiscoveryClientForConfig(w.cluster.config)
	if err != nil {
		return nil, err
	}
	lists, err := asked.ServerPreferredNamespacedResources()
	if err != nil {
		return nil, err
	}
	var kinds []schema.GroupVersionKind
	for _, list := range lists {
		version, err := schema.ParseGroupVersion(list.GroupVersion)
		if err != nil {
			return nil, fmt.Errorf("discovering the kinds that the cluster serves: %w", err)
		}
		for _, resource := range list.APIResources {
			if slices.Contains(resource.Verbs, "list") && !slices.Contains(derived(), resource.Kind) {
				kinds = append(kinds, version.WithKind(resource.Kind))
			}
		}
	}
	return kinds, nil
}

// derived returns the kinds of objects that Kubernetes creates for other objects.
func derived() []string {
	return []string{"Event", "Endpoints", "EndpointSlice", "Lease", "PodMetrics"}
}
