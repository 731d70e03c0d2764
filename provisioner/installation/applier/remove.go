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
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/environment-broker/environment-broker/provisioner/installation"
)

// remove deletes the objects. While an object still exists, waiting describes it. Objects without the label of this installation
// are not deleted, even if they have the name of an installed object.
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

// delete deletes an object of this installation. It returns the object while it still exists, for example because of a
// finalizer, and nil if it is gone or belongs to another owner. The UID is a precondition, so a new object with the same name is
// not deleted.
func (w *work) delete(ctx context.Context, ref ref) (*metav1.PartialObjectMetadata, error) {
	object := ref.bare()
	if err := w.client.Get(ctx, ref.key(), object); err != nil {
		return nil, ignoreGone(err)
	}
	if object.Labels[LabelInstallation] != w.runtimeID {
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

// Uninstall implements installation.Installer. It removes the last component first. Within a component it first removes the
// definitions, which deletes all objects of the defined kinds. The component's controllers are still running then and handle the
// finalizers of these objects. Namespaces without objects of other owners are removed at the end.
func (a *Applier) Uninstall(ctx context.Context, cluster *rest.Config, runtimeID string) (installation.Progress, error) {
	return a.call(ctx, cluster, runtimeID, func(work *work) (installation.Progress, error) { return a.uninstall(ctx, work) })
}

// uninstall removes the objects that the inventory lists, so it needs no plan. It drops removed objects from their entries, so
// that the next call continues with the remaining objects. Namespaces stay in their entries until all other objects are removed.
func (a *Applier) uninstall(ctx context.Context, work *work) (installation.Progress, error) {
	entries := work.inventory.Entries
	for i, entry := range slices.Backward(entries) {
		where := fmt.Sprintf("component %d of %d (%s)", i+1, len(entries), entry.Name)
		if a.exhausted(work) {
			return removing(where, "comes next"), nil
		}
		definitions, rest, namespaces := split(union(entry.Objects, entry.Former))
		if len(definitions)+len(rest) == 0 {
			continue
		}
		for _, refs := range [][]ref{definitions, backwards(rest)} {
			waiting, err := work.remove(ctx, refs)
			if err != nil {
				return installation.Progress{}, explain(err, where+" cannot be removed", installation.Component{})
			}
			if waiting != "" {
				return removing(where, waiting), nil
			}
		}
		entry.Objects, entry.Former, work.changed = namespaces, nil, true
		entry.Applied, entry.Ready = "", false
	}
	progress, err := work.removeNamespaces(ctx)
	if err != nil {
		return progress, explain(err, "namespaces cannot be removed", installation.Component{})
	}
	return progress, nil
}

// removeNamespaces is the last part of an uninstallation. It removes the namespaces that the entries still list, and then the
// inventory itself.
func (w *work) removeNamespaces(ctx context.Context) (installation.Progress, error) {
	var namespaces []ref
	for _, entry := range w.inventory.Entries {
		namespaces = union(namespaces, entry.Objects)
	}
	message := []string{"nothing is installed"}
	var going []ref
	for _, namespace := range namespaces {
		reason, err := w.reasonToKeepNamespace(ctx, namespace)
		if err != nil {
			return installation.Progress{}, err
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
		return installation.Progress{}, explain(err, "the inventory cannot be removed", installation.Component{})
	}
	w.changed = false
	return installation.Progress{Done: true, Message: strings.Join(message, "; ")}, nil
}
