package applier

import (
	"encoding/base64"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/environment-broker/environment-broker/internal/failure"
	"github.com/environment-broker/environment-broker/internal/secret"
	"github.com/environment-broker/environment-broker/provisioner/installation"
)

// explain converts an error to a failure.Error whose text starts with where. An error that already is a failure.Error keeps its
// text. Only the rejection of an object is permanent: while a cluster or its webhooks start, any other error may be temporary.
// Texts from the cluster may quote values of the component, so explain masks secret values, and replaces the cause with its
// masked text.
func explain(err error, where string, component installation.Component) error {
	if typed, ok := errors.AsType[*failure.Error](err); ok {
		masked := *typed
		masked.Text = mask(typed.Text, component)
		if typed.Cause != nil {
			masked.Cause = errors.New(mask(typed.Cause.Error(), component))
		}
		return masked.WithDetail(mask(typed.Detail, component))
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

	return failure.Wrap(kind, errors.New(mask(err.Error(), component)), "%s: %s", where, mask(text, component)).
		WithReason(failure.ReasonInternal, failure.ComponentRuntime).WithDetail(mask(reported, component))
}

// objectError is the error of an object that could not be applied.
type objectError struct {
	ref   ref
	cause error
	// recreate reports whether the object has AnnotationRecreate.
	recreate bool
}

func (e *objectError) Error() string { return fmt.Sprintf("applying %s: %v", e.ref, e.cause) }

func (e *objectError) Unwrap() error { return e.cause }

// text describes the error for users. If a field is immutable, it also says how users or maintainers can fix the problem.
func (e *objectError) text() string {
	switch {
	case immutable(e.cause):
	case refuses(e.cause):
		return fmt.Sprintf("the API server of the cluster rejects %s", e.ref)
	default:
		return fmt.Sprintf("the API server of the cluster reports an error about %s", e.ref)
	}

	return fmt.Sprintf("%s cannot be updated to the release, because a changed field is immutable; delete it manually, or annotate it "+
		"in the release with %s: \"true\"", e.ref, AnnotationRecreate)
}

// immutable reports whether an immutable field was changed. Such errors have no specific reason, so immutable recognizes the
// messages of the API server, of validation rules (CEL) and of common webhooks.
func immutable(err error) bool {
	if !apierrors.IsInvalid(err) && !apierrors.IsForbidden(err) && !apierrors.IsBadRequest(err) {
		return false
	}

	return slices.ContainsFunc([]string{
		"immutable", "may not change once set", "cannot change roleRef", "updates to statefulset spec for fields other than",
	}, func(text string) bool { return strings.Contains(err.Error(), text) })
}

// refuses reports whether the API server or a webhook rejects the object itself. A retry would also fail.
func refuses(err error) bool {
	return apierrors.IsInvalid(err) || apierrors.IsBadRequest(err) || apierrors.IsRequestEntityTooLargeError(err)
}

// mask replaces the component's secret values in a text. It also finds them quoted, as in Go and JSON, and in base64, as in
// Secrets.
func mask(text string, component installation.Component) string {
	for _, key := range component.SecretKeys {
		value := component.Values[key]
		// An empty value would match between all characters of the text.
		if value == "" {
			continue
		}
		quoted := strings.Trim(strconv.Quote(value), `"`)
		encoded := base64.StdEncoding.EncodeToString([]byte(value))
		text = strings.NewReplacer(value, secret.Mask, quoted, secret.Mask, encoded, secret.Mask).Replace(text)
	}
	return text
}

// goingAway returns a message about an object that is being deleted. The message lists the finalizers, because they indicate
// which controller delays the deletion.
func goingAway(ref ref, finalizers []string) string {
	if len(finalizers) == 0 {
		return fmt.Sprintf("waiting until %s is gone", ref)
	}
	return fmt.Sprintf("waiting until %s is gone: it has finalizers %s", ref, strings.Join(finalizers, ", "))
}
