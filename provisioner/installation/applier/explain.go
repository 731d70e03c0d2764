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

// explain says what an error means. But for what the API server finds wrong with an object, all may pass: a cluster that has just been
// made, or whose webhooks start, may answer anything for a while. What it says may quote a value: those that are secret are masked, and the
// error itself is not kept.
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

// objectError is what the API server answers when an object is applied.
type objectError struct {
	ref   ref
	cause error
	// recreate says that the object may be deleted and created again.
	recreate bool
}

func (e *objectError) Error() string { return fmt.Sprintf("apply %s: %v", e.ref, e.cause) }

func (e *objectError) Unwrap() error { return e.cause }

// text says what to do about the message of the API server.
func (e *objectError) text(message string) string {
	if !immutable(e.cause) {
		return e.ref.String() + ": " + message
	}

	return fmt.Sprintf("%s cannot be changed into what the release wants: %s; delete it by hand, or have the release annotate it with %s: \"true\"",
		e.ref, message, AnnotationRecreate)
}

// immutable reports whether the API server rejects the change of a field that cannot be changed. There is no reason or code for it: this
// is what the API server, its validation rules (CEL) and the webhooks in the field say.
func immutable(err error) bool {
	if !apierrors.IsInvalid(err) && !apierrors.IsForbidden(err) && !apierrors.IsBadRequest(err) {
		return false
	}

	return slices.ContainsFunc([]string{
		"immutable", "may not change once set", "cannot change roleRef", "updates to statefulset spec for fields other than",
	}, func(text string) bool { return strings.Contains(err.Error(), text) })
}

// refuses tells whether the API server, or a webhook that answers, does not want the object as it is.
func refuses(err error) bool {
	return apierrors.IsInvalid(err) || apierrors.IsBadRequest(err) || apierrors.IsRequestEntityTooLargeError(err)
}

// mask takes secret values out of a text, also where they stand as Go and JSON quote them or as Secrets hold them.
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
	return fmt.Sprintf("waiting until %s is gone: it has the finalizers %s", ref, strings.Join(finalizers, ", "))
}
