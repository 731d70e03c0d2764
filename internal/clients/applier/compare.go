package applier

import (
	"context"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/environment-broker/environment-broker/internal/failure"
)

// Values of Difference.Action.
const (
	ActionCreate = "create"
	ActionChange = "change"
	ActionDelete = "delete"
)

// Difference names an object that an apply would change, and the kind of the change.
type Difference struct {
	Action string
	// Object is the kind and name of the object.
	Object string
	// Before is the object on the cluster, or nil if it would be created. After is the result of a dry run, which includes the defaults
	// of the API server, or nil if the object would be deleted. For an object that would be deleted, Before contains only metadata.
	Before, After *unstructured.Unstructured
}

// Compare returns the changes that Apply would make, without making them. An object of a kind that the content itself defines
// counts as missing while the cluster does not serve the kind.
func (a *Applier) Compare(ctx context.Context, cluster *Cluster, owner Owner, content Content) (differences []Difference, err error) {
	_, err = a.call(ctx, cluster, owner, func(work *work) (Progress, error) {
		var wanted []ref

		work.checkDefinition = content.CheckDefinition

		for _, part := range content.Parts {
			found, refs, err := work.comparePart(ctx, part)
			if err != nil {
				return Progress{}, work.explain(err, part.Name, part)
			}

			differences, wanted = append(differences, found...), append(wanted, refs...)
		}

		deleted, err := work.deletions(ctx, wanted)
		if err != nil {
			return Progress{}, work.explain(err, "the installed objects cannot be read", Part{})
		}

		differences = append(differences, deleted...)

		return Progress{}, nil
	})

	return differences, err
}

// comparePart returns the changes that Apply would make to the objects of one part. refs identify all objects of the part.
func (w *work) comparePart(ctx context.Context, part Part) (differences []Difference, refs []ref, err error) {
	prepared, unknown, err := w.prepare(ctx, part)
	if err != nil {
		return nil, nil, err
	}

	if unknown != "" {
		return nil, nil, failure.New(failure.Transient, "%s", unknown).WithReason(failure.ReasonInternal, failure.ComponentRuntime)
	}

	present, defined := w.present(ctx, prepared.objects), definitions(prepared.objects)

	for _, object := range prepared.objects {
		found := present[refOf(object)]
		if found == nil {
			if found, err = w.read(ctx, object); err != nil {
				return nil, nil, err
			}
		}

		difference, err := w.compareObject(ctx, object, found, defined)
		if err != nil {
			return nil, nil, err
		}

		if difference.Action != "" {
			differences = append(differences, difference)
		}
	}

	return differences, prepared.refs, nil
}

// compareObject returns the change that Apply would make to an object. If there is no change, the Action of the result is empty.
// The API server may reject an object whose kind or namespace does not exist yet. This is not an error if the content also
// contains the definition or the namespace.
func (w *work) compareObject(ctx context.Context, object, present *unstructured.Unstructured, defined map[schema.GroupKind]bool) (Difference, error) {
	_, own := defined[object.GroupVersionKind().GroupKind()]
	difference := Difference{ActionChange, refOf(object).String(), present, object}

	if present.GetUID() == "" {
		difference.Action, difference.Before = ActionCreate, nil

		if own {
			return difference, nil
		}

		applied, err := w.dryRun(ctx, object, present)
		if err == nil {
			difference.After = applied
		}

		if apierrors.IsNotFound(err) { // its namespace does not exist yet
			err = nil
		}

		return difference, err
	}

	applied, err := w.dryRun(ctx, object, present)
	if err != nil && own && refuses(err) {
		return difference, nil
	}

	if err != nil || !changes(present, applied) {
		return Difference{}, err
	}

	difference.After = applied

	return difference, nil
}

// deletions returns a Difference for each installed object that is no longer wanted and that Apply would delete.
func (w *work) deletions(ctx context.Context, wanted []ref) (differences []Difference, err error) {
	var present []ref
	for _, entry := range w.inventory.Entries {
		present = union(present, union(entry.Objects, entry.Former))
	}

	for _, ref := range backwards(without(present, wanted)) {
		object, err := w.find(ctx, ref)
		if err != nil {
			return nil, err
		}

		if object == nil || !w.owner.owns(object.Labels) || object.Annotations[AnnotationPolicy] == policyKeep {
			continue
		}

		if ref.isDefinition() || ref.isNamespace() {
			reason, err := w.reasonToKeep(ctx, ref)
			if err != nil {
				return nil, err
			}

			if reason != "" {
				continue
			}
		}

		before := &unstructured.Unstructured{}
		before.SetGroupVersionKind(ref.kind())
		before.SetNamespace(ref.Namespace)
		before.SetName(ref.Name)

		differences = append(differences, Difference{ActionDelete, ref.String(), before, nil})
	}

	return differences, nil
}
