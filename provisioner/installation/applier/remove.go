package applier

import (
	"context"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// remove has all these objects deleted and says for which it waits. What does not carry the label of this installation, or was made
// anew by somebody meanwhile, is left alone.
func (w *work) remove(ctx context.Context, refs []ref) (waiting string, err error) {
	for _, ref := range refs {
		there, err := w.delete(ctx, ref)
		if err != nil {
			return "", err
		}
		if there != nil && waiting == "" {
			waiting = goingAway(ref, there.GetFinalizers())
		}
	}
	return waiting, nil
}

// delete returns the object when it is still there after it was deleted.
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

// ignoreGone takes it for no error that an object is not there any more, or not even its kind.
func ignoreGone(err error) error {
	if apierrors.IsNotFound(err) || meta.IsNoMatchError(err) {
		return nil
	}
	return err
}

// backwards sorts the objects so that what was applied last goes first: what calls others before what is called.
func backwards(refs []ref) []ref {
	sorted := slices.Clone(refs)
	slices.SortStableFunc(sorted, func(a, b ref) int { return compareKinds(b, a) })

	return sorted
}

// split takes the definitions of kinds and the namespaces out of the rest: both take more with them than themselves.
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
