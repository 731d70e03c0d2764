package applier

import (
	"context"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// removeStrays deletes objects that a BundleDeployment has applied and that its inventory does not list. Such an object appears if the
// last call of a replica that has lost its lease arrives late. removeStrays searches only the kinds in the inventory. It keeps objects
// that somebody else has created with the labels of the owner, for example copies. It also keeps namespaces and definitions, because
// their deletion would delete other objects.
func (w *work) removeStrays(ctx context.Context) error {
	if w.owner.kind != kindBundleDeployment {
		return nil
	}

	var listed []ref
	for _, entry := range w.inventory.Entries {
		listed = union(listed, union(entry.Objects, entry.Former))
	}

	var strays []metav1.PartialObjectMetadata

	for _, kind := range kindsOf(listed) {
		found, err := w.strays(ctx, kind, listed)
		if err != nil {
			return err
		}

		strays = append(strays, found...)
	}

	if len(strays) == 0 {
		return nil
	}

	// This replica itself may have lost its lease. In that case, the stored inventory has changed and may list objects that this replica
	// does not know.
	current := &corev1.Secret{}
	if err := w.client.Get(ctx, client.ObjectKey{Namespace: metav1.NamespaceSystem, Name: w.owner.inventory}, current); err != nil {
		return err
	}

	if stored := w.inventory.stored.secret; stored == nil || stored.ResourceVersion != current.ResourceVersion {
		return nil
	}

	for i := range strays {
		if strays[i].Annotations[AnnotationPolicy] == policyKeep {
			continue
		}

		same := client.Preconditions{UID: &strays[i].UID, ResourceVersion: &strays[i].ResourceVersion}

		err := w.client.Delete(ctx, &strays[i], same, client.PropagationPolicy(metav1.DeletePropagationBackground))
		if ignoreGone(err) != nil && !apierrors.IsConflict(err) {
			return err
		}
	}

	return nil
}

// strays returns the objects of a kind that the owner has applied, except the listed ones. The result is empty if listing the
// kind is forbidden.
func (w *work) strays(ctx context.Context, kind schema.GroupVersionKind, listed []ref) (strays []metav1.PartialObjectMetadata, err error) {
	found := &metav1.PartialObjectMetadataList{}
	found.SetGroupVersionKind(kind)

	err = w.client.List(ctx, found, client.MatchingLabels(w.owner.labels))
	if apierrors.IsForbidden(err) {
		return nil, nil
	}

	for _, object := range found.Items {
		object.SetGroupVersionKind(kind)

		this := ref{kind.Group, kind.Version, kind.Kind, object.Namespace, object.Name}
		if !has(listed, this) && object.DeletionTimestamp == nil && w.owner.hasApplied(object.ManagedFields) {
			strays = append(strays, object)
		}
	}

	return strays, ignoreGone(err)
}

// kindsOf returns the kinds of the objects, except namespaces and definitions.
func kindsOf(refs []ref) (kinds []schema.GroupVersionKind) {
	for _, ref := range refs {
		if !ref.isNamespace() && !ref.isDefinition() && !slices.Contains(kinds, ref.kind()) {
			kinds = append(kinds, ref.kind())
		}
	}

	return kinds
}
