package applier

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// remove deletes the objects. While an object still exists, waiting describes it. Objects without the owner's labels are not
// deleted, even if they have the name of an installed object.
func (w *work) remove(ctx context.Context, refs []ref) (waiting string, err error) {
	for _, ref := range refs {
		there, err := w.delete(ctx, ref)
		if err != nil {
			return "", err
		}
		if there != nil {
			waiting = cmp.Or(waiting, goingAway(ref, there.GetFinalizers()))
		}
	}
	return waiting, nil
}

// delete deletes an object of the owner. It returns the object while it still exists, for example because of a finalizer, and nil
// if it is gone, belongs to another owner or must be kept. The UID is a precondition, so a new object with the same name is not
// deleted.
func (w *work) delete(ctx context.Context, ref ref) (*metav1.PartialObjectMetadata, error) {
	object, err := w.find(ctx, ref)
	if object == nil || err != nil {
		return nil, err
	}
	if !w.owner.owns(object.Labels) || object.Annotations[AnnotationPolicy] == policyKeep {
		return nil, nil
	}
	if object.DeletionTimestamp != nil {
		return object, nil
	}
	this := client.Preconditions{UID: &object.UID}
	if err := w.client.Delete(ctx, object, this, client.PropagationPolicy(metav1.DeletePropagationBackground)); err != nil {
		return nil, ignoreGone(err)
	}
	if err := w.client.Get(ctx, ref.key(), object); err != nil {
		return nil, ignoreGone(err)
	}
	return object, nil
}

// ignoreGone returns nil if the error means that the object or its kind does not exist.
func ignoreGone(err error) error {
	if apierrors.IsNotFound(err) || meta.IsNoMatchError(err) {
		return nil
	}
	return err
}

// backwards sorts the objects in the reverse order of their kinds, so that an object is removed before the objects that it
// depends on.
func backwards(refs []ref) []ref {
	sorted := slices.Clone(refs)
	slices.SortStableFunc(sorted, func(a, b ref) int { return compareKinds(b, a) })

	return sorted
}

// removeInOrder removes webhook configurations and custom resources before all other objects, and waits until they are gone: the
// controllers that remove the finalizers of the custom resources may be among the other objects. Webhook configurations come first, so
// that a webhook whose server does not run cannot reject the removal of custom resources.
func (w *work) removeInOrder(ctx context.Context, refs []ref) (waiting string, err error) {
	sorted := backwards(refs)
	first := slices.DeleteFunc(slices.Clone(sorted), func(one ref) bool { return !one.isCustom() && !slices.Contains(kindsLast(), one.Kind) })

	if waiting, err := w.remove(ctx, first); err != nil || waiting != "" {
		return waiting, err
	}

	return w.remove(ctx, without(sorted, first))
}

// split separates definitions and namespaces from the rest, because their deletion also deletes other objects.
func split(refs []ref) (definitions, rest, namespaces []ref) {
	for _, ref := range refs {
		switch {
		case ref.isDefinition():
			definitions = append(definitions, ref)
		case ref.isNamespace():
			namespaces = append(namespaces, ref)
		default:
			rest = append(rest, ref)
		}
	}
	return definitions, rest, namespaces
}

// Remove removes all objects of the owner, the last part first. Within a part it first removes the definitions, which deletes all
// objects of the defined kinds. The part's controllers are still running then and handle the finalizers of these objects. Namespaces
// without objects of other owners are removed at the end. Callers repeat Remove until it is done. If nothing is installed, the first
// call is done.
func (a *Applier) Remove(ctx context.Context, cluster *Cluster, owner Owner) (Progress, error) {
	return a.call(ctx, cluster, owner, func(work *work) (Progress, error) { return a.uninstall(ctx, work) })
}

// RemoveUnused removes the objects of the owner, like an Apply with no parts. It keeps CustomResourceDefinitions that still have
// objects, and namespaces with objects of other owners. The inventory continues to list the kept objects.
func (a *Applier) RemoveUnused(ctx context.Context, cluster *Cluster, owner Owner) (Progress, error) {
	return a.call(ctx, cluster, owner, func(work *work) (Progress, error) {
		progress, err := a.apply(ctx, work, Content{Installed: nothingInstalled})
		if err != nil || !progress.Done || len(work.inventory.Entries) > 0 {
			return progress, err
		}
		if err := work.inventory.drop(ctx, work.client); err != nil {
			return Progress{}, work.explain(err, "the inventory cannot be removed", Part{})
		}
		work.changed = false
		return progress, nil
	})
}

// Installed reports whether the cluster has an inventory of the owner that has at least one entry.
func (a *Applier) Installed(ctx context.Context, cluster *Cluster, owner Owner) (installed bool, err error) {
	_, err = a.call(ctx, cluster, owner, func(work *work) (Progress, error) {
		installed = len(work.inventory.Entries) > 0
		return Progress{}, nil
	})
	return installed, err
}

// nothingInstalled is the message once everything has been removed.
const nothingInstalled = "nothing is installed"

// uninstall removes the objects that the inventory lists, so it does not need the content. It drops removed objects from their
// entries, so that the next call continues with the remaining objects. Namespaces stay in their entries until all other objects
// are removed.
func (a *Applier) uninstall(ctx context.Context, work *work) (Progress, error) {
	entries := work.inventory.Entries
	for i, entry := range slices.Backward(entries) {
		where := work.owner.where(i, len(entries), entry.Name)
		if a.exhausted(work) {
			return removing(where, "not started yet"), nil
		}
		definitions, rest, namespaces := split(union(entry.Objects, entry.Former))
		if len(definitions)+len(rest) == 0 {
			continue
		}
		waiting, err := work.remove(ctx, definitions)
		if err == nil && waiting == "" {
			waiting, err = work.removeInOrder(ctx, rest)
		}
		if err != nil {
			return Progress{}, work.explain(err, where+" cannot be removed", Part{})
		}
		if waiting != "" {
			return removing(where, waiting), nil
		}
		entry.Objects, entry.Former, work.changed = namespaces, nil, true
		entry.Applied, entry.Ready = "", false
	}
	progress, err := work.removeNamespaces(ctx)
	if err != nil {
		return progress, work.explain(err, "namespaces cannot be removed", Part{})
	}
	return progress, nil
}

// removeNamespaces completes an uninstallation. It removes the namespaces that the entries still list, and then the inventory
// itself.
func (w *work) removeNamespaces(ctx context.Context) (Progress, error) {
	var namespaces []ref
	for _, entry := range w.inventory.Entries {
		namespaces = union(namespaces, entry.Objects)
	}
	message := []string{nothingInstalled}
	var going []ref
	for _, namespace := range namespaces {
		reason, err := w.reasonToKeepNamespace(ctx, namespace)
		if err != nil {
			return Progress{}, err
		}
		if reason != "" {
			message = append(message, fmt.Sprintf("%s is kept: %s", namespace, reason))
			continue
		}
		going = append(going, namespace)
	}
	waiting, err := w.remove(ctx, going)
	if err != nil || waiting != "" {
		return removing("namespaces", waiting), err
	}
	if err := w.inventory.drop(ctx, w.client); err != nil {
		return Progress{}, w.explain(err, "the inventory cannot be removed", Part{})
	}
	w.changed = false
	return Progress{Done: true, Message: strings.Join(message, "; ")}, nil
}
