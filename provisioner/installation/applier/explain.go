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

// explain classifies an error. Only the rejection of an object is permanent: a new cluster, or one whose webhooks start, may answer
// anything for a while. Messages may quote values, so secret ones are masked and the original error is dropped.
func explain(err error, where string, component installation.Component) error {
	if known, ok := errors.AsType[*failure.Error](err); ok {
		masked := *known
		masked.Text = mask(known.Text, component)
		if known.Cause != nil {
			masked.Cause = errors.New(mask(known.Cause.Error(), component))
		}
		return &masked
	}
	kind, text := failure.Transient, "the API server of the cluster does not answer"

	if status := apierrors.APIStatus(nil); errors.As(err, &status) {
		text = status.Status().Message

		object, applied := errors.AsType[*objectError](err)
		if applied {
			text = object.text(text)
		}

		if refuses(err) || applied && immutable(object.cause) {
			kind = failure.Permanent
		}
	}

	return failure.Wrap(kind, errors.New(mask(err.Error(), component)), "%s: %s", where, mask(text, component)).
		WithReason(failure.ReasonInternal, failure.ComponentRuntime)
}

// objectError is the error of applying an object.
type objectError struct {
	ref   ref
	cause error
	// recreate says that the object has AnnotationRecreate.
	recreate bool
}

func (e *objectError) Error() string { return fmt.Sprintf("apply %s: %v", e.ref, e.cause) }

func (e *objectError) Unwrap() error { return e.cause }

// text completes the message of the API server with the object and a remedy.
func (e *objectError) text(message string) string {
	if !immutable(e.cause) {
		return e.ref.String() + ": " + message
	}

	return fmt.Sprintf("%s cannot be updated to the release: %s; delete it by hand, or annotate it in the release with %s: \"true\"",
		e.ref, message, AnnotationRecreate)
}

// immutable reports whether the API server rejects the change of a field that cannot be changed. It has no reason or code of its own;
// these are the messages of the API server, of validation rules (CEL) and of common webhooks.
func immutable(err error) bool {
	if !apierrors.IsInvalid(err) && !apierrors.IsForbidden(err) && !apierrors.IsBadRequest(err) {
		return false
	}

	return slices.ContainsFunc([]string{
		"immutable", "may not change once set", "cannot change roleRef", "updates to statefulset spec for fields other than",
	}, func(text string) bool { return strings.Contains(err.Error(), text) })
}

// refuses reports whether the API server or a webhook rejects the object itself.
func refuses(err error) bool {
	return apierrors.IsInvalid(err) || apierrors.IsBadRequest(err) || apierrors.IsRequestEntityTooLargeError(err)
}

// mask replaces secret values in a text, also in their quoted form (Go, JSON) and in base64, as Secrets hold them.
func mask(text string, component installation.Component) string {
	for _, key := range component.SecretKeys {
		value := component.Values[key]
		if value == "" {
			continue
		}
		quoted := strings.Trim(strconv.Quote(value), `"`)
		held := base64.StdEncoding.EncodeToString([]byte(value))
		text = strings.NewReplacer(value, secret.Mask, quoted, secret.Mask, held, secret.Mask).Replace(text)
	}
	return text
}

func goingAway(ref ref, finalizers []string) string {
	if len(finalizers) == 0 {
		return fmt.Sprintf("waiting until %s is gone", ref)
	}
	return fmt.Sprintf("waiting until %s is gone: it has finalizers %s", ref, strings.Join(finalizers, ", "))
}
