package applier

import (
	"context"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/environment-broker/environment-broker/internal/failure"
)

// Actions of a Difference.
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
}

// Compare returns what Apply would do, without a change. An object of a kind that the content itself defines counts as missing while the
// cluster does not serve the kind.
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

		var present []ref
		for _, entry := range work.inventory.Entries {
			present = union(present, union(entry.Objects, entry.Former))
		}

		for _, ref := range backwards(without(present, wanted)) {
			differences = append(differences, Difference{ActionDelete, ref.String()})
		}

		return Progress{}, nil
	})

	return differences, err
}

// comparePart compares the objects of one part, and returns the objects that it wants to have.
func (w *work) comparePart(ctx context.Context, part Part) (differences []Difference, refs []ref, err error) {
	prepared, unknown, err := w.prepare(ctx, part)
	if err != nil {
		return nil, nil, err
	}

	if unknown != "" {
		return nil, nil, failure.New(failure.Transient, "%s", unknown).WithReason(failure.ReasonInternal, failure.ComponentRuntime)
	}

	present := w.present(ctx, prepared.objects)

	for _, object := range prepared.objects {
		found := present[refOf(object)]
		if found == nil {
			if found, err = w.read(ctx, object); err != nil {
				return nil, nil, err
			}
		}

		if found.GetUID() == "" {
			differences = append(differences, Difference{ActionCreate, refOf(object).String()})

			continue
		}

		changed, err := w.differs(ctx, object, found)
		if err != nil {
			return nil, nil, err
		}

		if changed {
			differences = append(differences, Difference{ActionChange, refOf(object).String()})
		}
	}

	return differences, prepared.refs, nil
}

// Unhealthy describes the installed objects of the owner that are missing or do not work. It is empty if all work.
func (a *Applier) Unhealthy(ctx context.Context, cluster *Cluster, owner Owner) (problems []string, err error) {
	_, err = a.call(ctx, cluster, owner, func(work *work) (Progress, error) {
		for _, entry := range work.inventory.Entries {
			known := work.problems(ctx, entry.Objects)

			for _, ref := range entry.Objects {
				problem, listed := known[ref]
				if !listed {
					if problem, err = work.unhealthy(ctx, ref); err != nil {
						return Progress{}, work.explain(err, "the health of "+ref.String()+" cannot be read", Part{})
					}
				}

				if problem != "" {
					problems = append(problems, problem)
				}
			}
		}

		return Progress{}, nil
	})

	return problems, err
}

// unhealthy describes why an object does not work, or returns "".
func (w *work) unhealthy(ctx context.Context, ref ref) (string, error) {
	if ref.readyByExistence() {
		return w.missing(ctx, ref)
	}

	object := &unstructured.Unstructured{}
	object.SetGroupVersionKind(ref.kind())

	err := w.client.Get(ctx, ref.key(), object)

	switch {
	case apierrors.IsNotFound(err) || meta.IsNoMatchError(err):
		return ref.String() + " is missing", nil
	case err != nil:
		return "", err
	}

	return problemOf(ref, object), nil
}

// missing reports a missing object whose kind has no health.
func (w *work) missing(ctx context.Context, ref ref) (string, error) {
	err := w.client.Get(ctx, ref.key(), ref.bare())
	if err != nil && ignoreGone(err) == nil {
		return ref.String() + " is missing", nil
	}

	return "", err
}

// Remaining returns the objects that the inventory of the owner lists and that still exist with its labels.
func (a *Applier) Remaining(ctx context.Context, cluster *Cluster, owner Owner) (objects []string, err error) {
	_, err = a.call(ctx, cluster, owner, func(work *work) (Progress, error) {
		var listed []ref
		for _, entry := range slices.Backward(work.inventory.Entries) {
			listed = union(listed, union(entry.Objects, entry.Former))
		}

		for _, ref := range backwards(listed) {
			object := ref.bare()
			if err := work.client.Get(ctx, ref.key(), object); ignoreGone(err) != nil {
				return Progress{}, work.explain(err, ref.String()+" cannot be read", Part{})
			}

			if object.UID != "" && owner.owns(object.Labels) {
				objects = append(objects, ref.String())
			}
		}

		return Progress{}, nil
	})

	return objects, err
}
