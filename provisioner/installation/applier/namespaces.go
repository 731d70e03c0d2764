package applier

import (
	"context"
	"errors"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	// page is how many objects are read at once.
	page = 50
	// mostPages bounds how many objects of a kind are looked at: a namespace with more is not removed.
	mostPages = 200
)

// foreign says what is in a namespace that is neither of the installation nor made by the cluster itself, nothing when there is no such
// thing. A namespace that every cluster has is foreign as a whole.
func (w *work) foreign(ctx context.Context, namespace ref) (string, error) {
	if slices.Contains([]string{metav1.NamespaceDefault, metav1.NamespaceSystem, metav1.NamespacePublic, "kube-node-lease"}, namespace.Name) {
		return "every cluster has it", nil
	}
	object := namespace.bare()
	if err := w.client.Get(ctx, namespace.key(), object); err != nil {
		return "", ignoreGone(err)
	}
	if object.Labels[LabelInstallation] != w.runtimeID || object.DeletionTimestamp != nil {
		return "", nil
	}
	kinds, err := w.kinds()
	if err != nil {
		return "", err
	}
	for _, kind := range kinds {
		if reason, err := w.foreignOf(ctx, kind, namespace.Name); err != nil || reason != "" {
			return reason, err
		}
	}
	return "", nil
}

// foreignOf is foreign for the objects of one kind.
func (w *work) foreignOf(ctx context.Context, kind schema.GroupVersionKind, namespace string) (string, error) {
	next := ""
	for range mostPages {
		found := &metav1.PartialObjectMetadataList{}
		found.SetGroupVersionKind(kind)
		err := w.client.List(ctx, found, client.InNamespace(namespace), client.Limit(page), client.Continue(next))
		if ignoreGone(err) != nil {
			return "", err
		}
		for _, object := range found.Items {
			if w.isForeign(kind.Kind, object) {
				return fmt.Sprintf("%s %s in it is not of the installation", kind.Kind, object.Name), nil
			}
		}
		if next = found.Continue; next == "" {
			return "", nil
		}
	}
	return fmt.Sprintf("it holds more than %d objects of kind %s", mostPages*page, kind.Kind), nil
}

func (w *work) isForeign(kind string, object metav1.PartialObjectMetadata) bool {
	switch {
	case object.Labels[LabelInstallation] == w.runtimeID, object.DeletionTimestamp != nil, len(object.OwnerReferences) > 0:
		return false
	case kind == "ConfigMap" && object.Name == "kube-root-ca.crt", kind == "ServiceAccount" && object.Name == "default":
		return false
	default:
		return true
	}
}

// kinds lists the kinds that live in namespaces and can be listed. Those that tell of other objects are left out. An API that does not
// answer could hold anything: then nothing is known.
func (w *work) kinds() ([]schema.GroupVersionKind, error) {
	asked, err := discovery.NewDiscoveryClientForConfig(w.config)
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
			return nil, errors.Join(errors.New("discover the kinds of the cluster"), err)
		}
		for _, resource := range list.APIResources {
			if slices.Contains(resource.Verbs, "list") && !slices.Contains(derived(), resource.Kind) {
				kinds = append(kinds, version.WithKind(resource.Kind))
			}
		}
	}
	return kinds, nil
}

// derived are kinds whose objects follow others, or tell of them.
func derived() []string {
	return []string{"Event", "Endpoints", "EndpointSlice", "Lease", "PodMetrics"}
}
