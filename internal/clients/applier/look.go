package applier

import (
	"context"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Unhealthy describes the installed objects of the owner that are missing or not healthy. The result is empty if all are healthy. A
// cluster without an inventory of the owner is a problem, too, so call Unhealthy only after an installation.
func (a *Applier) Unhealthy(ctx context.Context, cluster *Cluster, owner Owner) (problems []string, err error) {
	_, err = a.call(ctx, cluster, owner, func(work *work) (Progress, error) {
		if len(work.inventory.Entries) == 0 {
			problems = append(problems, "the inventory of "+owner.title+" is missing")
		}

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

// unhealthy describes why an object is missing or not healthy, or returns "" if it is healthy.
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

// missing checks an object that is ready as soon as it exists. It returns a message if the object does not exist, and ""
// otherwise.
func (w *work) missing(ctx context.Context, ref ref) (string, error) {
	err := w.client.Get(ctx, ref.key(), ref.bare())
	if err != nil && ignoreGone(err) == nil {
		return ref.String() + " is missing", nil
	}

	return "", err
}

// Remaining returns the objects that the owner's inventory lists and that still exist with the owner's labels.
func (a *Applier) Remaining(ctx context.Context, cluster *Cluster, owner Owner) (objects []string, err error) {
	_, err = a.call(ctx, cluster, owner, func(work *work) (Progress, error) {
		var listed []ref
		for _, entry := range slices.Backward(work.inventory.Entries) {
			listed = union(listed, union(entry.Objects, entry.Former))
		}

		for _, ref := range backwards(listed) {
			object, err := work.find(ctx, ref)
			if err != nil {
				return Progress{}, work.explain(err, ref.String()+" cannot be read", Part{})
			}

			if object != nil && owner.owns(object.Labels) {
				objects = append(objects, ref.String())
			}
		}

		return Progress{}, nil
	})

	return objects, err
}
