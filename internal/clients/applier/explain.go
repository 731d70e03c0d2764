package applier

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/environment-broker/environment-broker/internal/failure"
)

// explain converts an error to a failure.Error whose text starts with where. An error that already is a failure.Error keeps its
// text. Only collisions and rejections of objects are permanent: while a cluster or its webhooks start, any other error may be
// temporary. Messages from the cluster may quote values of the part, so explain masks secret values, and replaces the cause with its
// masked text.
func (w *work) explain(err error, where string, part Part) error {
	if collision, ok := errors.AsType[*collisionError](err); ok {
		return failure.New(failure.Permanent, "%s: %s", where, collision.text).WithReason(failure.ReasonInternal, failure.ComponentRuntime)
	}
	if typed, ok := errors.AsType[*failure.Error](err); ok {
		masked := *typed
		masked.Text = part.mask(typed.Text)
		if typed.Cause != nil {
			masked.Cause = errors.New(part.mask(typed.Cause.Error()))
		}
		return masked.WithDetail(part.mask(typed.Detail))
	}
	kind, text, reported := failure.Transient, "the API server of the cluster does not respond", ""

	if status := apierrors.APIStatus(nil); errors.As(err, &status) {
		text, reported = "the API server of the cluster reports an error", status.Status().Message

		object, applied := errors.AsType[*objectError](err)
		if applied {
			text = object.text()
		}

		if refuses(err) || applied && immutable(object.cause) {
			kind = failure.Permanent
		}
	}

	return failure.Wrap(kind, maskedError{part.mask(err.Error()), unreachable(err)}, "%s: %s", where, part.mask(text)).
		WithReason(failure.ReasonInternal, failure.ComponentRuntime).WithDetail(part.mask(reported))
}

// maskedError is an error whose text has been masked. unreachable is the result of the function with the same name for the
// original error. It cannot be derived from the text.
type maskedError struct {
	text        string
	unreachable bool
}

func (e maskedError) Error() string { return e.text }

// unreachable reports whether an error means that the API server does not respond or rejects the connection, and therefore says
// nothing about the objects.
func unreachable(err error) bool {
	status := apierrors.APIStatus(nil)

	return !errors.As(err, &status) || apierrors.IsUnauthorized(err) || apierrors.IsServiceUnavailable(err) || apierrors.IsTooManyRequests(err)
}

// Unreachable reports whether an error of an Applier or a Cluster means that the cluster cannot be reached: it does not respond,
// its circuit breaker is open, or it rejects the credentials.
func Unreachable(err error) bool {
	masked, ok := errors.AsType[maskedError](err)

	return ok && masked.unreachable || err != nil && slices.Contains(
		[]string{failure.ReasonSystemUnavailable, failure.ReasonBusy}, failure.Of(err).Reason)
}

// objectError is the error for an object that could not be applied.
type objectError struct {
	ref   ref
	cause error
	// source is the noun for the content of the owner, such as release.
	source string
	// recreate reports whether the object has AnnotationRecreate.
	recreate bool
	// kept reports whether AnnotationPolicy prevents that the object is recreated.
	kept bool
}

func (w *work) objectError(object *unstructured.Unstructured, cause error) error {
	return &objectError{
		ref: refOf(object), cause: cause, source: w.owner.source, recreate: object.GetAnnotations()[AnnotationRecreate] == "true",
	}
}

// collision returns the error for an object that somebody else has installed.
func (w *work) collision(present *unstructured.Unstructured) error {
	with, advice := "was not installed by "+w.owner.title, "delete it, or omit it from the "+w.owner.source
	if owner := holder(present.GetLabels()); owner != "" {
		with, advice = "belongs to "+owner, "remove it from one of the two owners"
	}

	return &collisionError{fmt.Sprintf("%s exists already and %s: %s", refOf(present), with, advice)}
}

// collisionError is the error for an object that somebody else has installed.
type collisionError struct{ text string }

func (e *collisionError) Error() string { return e.text }

func (e *objectError) Error() string { return fmt.Sprintf("applying %s: %v", e.ref, e.cause) }

func (e *objectError) Unwrap() error { return e.cause }

// text describes the error for users. If a field is immutable, it also says how users or maintainers can fix the problem.
func (e *objectError) text() string {
	switch {
	case e.kept:
		return fmt.Sprintf("%s cannot be recreated, although a changed field is immutable, because it has the annotation %s: %s; delete it "+
			"manually", e.ref, AnnotationPolicy, policyKeep)
	case immutable(e.cause):
	case refuses(e.cause):
		return fmt.Sprintf("the API server of the cluster rejects %s", e.ref)
	default:
		return fmt.Sprintf("the API server of the cluster reports an error about %s", e.ref)
	}

	return fmt.Sprintf("%s cannot be updated to the %s, because a changed field is immutable; delete it manually, or annotate it "+
		"in the %s with %s: \"true\"", e.ref, e.source, e.source, AnnotationRecreate)
}

// immutable reports whether the error means that an immutable field differs. Such errors have no specific reason, so immutable
// recognizes the messages of the API server, of validation rules (CEL) and of common webhooks.
func immutable(err error) bool {
	if !apierrors.IsInvalid(err) && !apierrors.IsForbidden(err) && !apierrors.IsBadRequest(err) {
		return false
	}

	return slices.ContainsFunc([]string{
		"immutable", "may not change once set", "cannot change roleRef", "updates to statefulset spec for fields other than",
		"pod updates may not change fields other than", "may not be changed in an update", // PriorityClass
		"updates to parameters are forbidden", "updates to provisioner are forbidden", "updates to reclaimPolicy are forbidden", // StorageClass
	}, func(text string) bool { return strings.Contains(err.Error(), text) })
}

// refuses reports whether the API server or a webhook rejects the object itself, so that a retry would also fail. If a field of
// an applied object has the wrong type, the API server gives no specific reason, so refuses recognizes the message.
func refuses(err error) bool {
	mistyped := strings.Contains(err.Error(), "failed to create typed patch object")

	return mistyped || apierrors.IsInvalid(err) || apierrors.IsBadRequest(err) || apierrors.IsRequestEntityTooLargeError(err)
}

// goingAway returns a message about an object that is being deleted. The message lists the finalizers, because they indicate
// which controller delays the deletion.
func goingAway(ref ref, finalizers []string) string {
	if len(finalizers) == 0 {
		return fmt.Sprintf("waiting until %s is gone", ref)
	}
	return fmt.Sprintf("waiting until %s is gone: it has finalizers %s", ref, strings.Join(finalizers, ", "))
}
