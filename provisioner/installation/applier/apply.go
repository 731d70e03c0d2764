package applier

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/fluxcd/pkg/ssa"
	ssaerrors "github.com/fluxcd/pkg/ssa/errors"
	"github.com/fluxcd/pkg/ssa/utils"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// concurrency is how many objects are compared with the cluster at once.
const concurrency = 4

// intend stores which objects a component is about to have, before the first of them is applied: no crash leaves one that nobody knows.
// It stores also where nothing is new, and so fails when somebody else has gone on since the inventory was read.
func (w *work) intend(ctx context.Context, entry *entry, refs []ref) error {
	entry.intend(refs)
	return w.store(ctx)
}

// apply applies the objects: first what others need to be there, namespaces, definitions, roles and classes, and once that is in place
// the rest. It says for what it waits.
func (w *work) apply(ctx context.Context, objects []*unstructured.Unstructured) (waiting string, err error) {
	first := func(object *unstructured.Unstructured) bool {
		return utils.IsClusterDefinition(object) || utils.IsClassDefinition(object)
	}
	needed := slices.DeleteFunc(slices.Clone(objects), func(object *unstructured.Unstructured) bool { return !first(object) })
	rest := slices.DeleteFunc(slices.Clone(objects), first)
	if waiting, err := w.applyAll(ctx, needed); err != nil || waiting != "" {
		return waiting, err
	}
	refs := make([]ref, 0, len(needed))
	for _, object := range needed {
		refs = append(refs, refOf(object))
	}
	if waiting, _, err := w.health(ctx, refs); err != nil || waiting != "" {
		return waiting, err
	}
	return w.applyAll(ctx, rest)
}

func (w *work) applyAll(ctx context.Context, objects []*unstructured.Unstructured) (waiting string, err error) {
	manager := ssa.NewResourceManager(w.client, nil, ssa.Owner{Field: FieldManager})
	manager.SetConcurrency(concurrency)
	// Nothing is recreated by the library: it takes any invalid object for one that cannot be changed, and deletes what stands there.
	_, err = manager.ApplyAll(ctx, objects, ssa.ApplyOptions{})
	if apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause) {
		return "waiting until its namespace, which is going away, is gone and can be made anew", nil
	}
	dry, refused := errors.AsType[*ssaerrors.DryRunErr](err)
	if !refused || !unchangeable(dry) {
		return "", err
	}
	object := dry.InvolvedObject()
	if object.GetAnnotations()[AnnotationRecreate] != "true" {
		return "", &unchangeableError{ref: refOf(object), cause: dry.Unwrap()}
	}
	if _, err := w.remove(ctx, []ref{refOf(object)}); err != nil {
		return "", err
	}
	return fmt.Sprintf("%s is made anew, because it cannot be changed", refOf(object)), nil
}

// unchangeable tells whether the API server says that a field of the object cannot be changed.
func unchangeable(err *ssaerrors.DryRunErr) bool {
	cause := err.Unwrap()
	if !apierrors.IsInvalid(cause) && !apierrors.IsForbidden(cause) && !apierrors.IsBadRequest(cause) {
		return false
	}
	return slices.ContainsFunc([]string{
		"immutable", "may not change once set", "cannot change roleRef", "updates to statefulset spec for fields other than",
	}, func(said string) bool { return strings.Contains(cause.Error(), said) })
}

// unchangeableError tells of an object that has to be made anew.
type unchangeableError struct {
	ref   ref
	cause error
}

func (e *unchangeableError) Error() string {
	return fmt.Sprintf("%s cannot be changed into what the release wants: %s; delete it by hand, or have the release annotate it with %s: \"true\"",
		e.ref, said(e.cause), AnnotationRecreate)
}

func (e *unchangeableError) Unwrap() error { return e.cause }

// said is what an API server says, without what client and library put around it.
func said(err error) string {
	if status := apierrors.APIStatus(nil); errors.As(err, &status) {
		return status.Status().Message
	}
	return err.Error()
}

// bare is the metadata of the object, to be filled by a client.
func (r ref) bare() *metav1.PartialObjectMetadata {
	object := &metav1.PartialObjectMetadata{}
	object.SetGroupVersionKind(r.kind())
	object.SetNamespace(r.Namespace)
	object.SetName(r.Name)
	return object
}

func (r ref) key() client.ObjectKey { return client.ObjectKey{Namespace: r.Namespace, Name: r.Name} }
