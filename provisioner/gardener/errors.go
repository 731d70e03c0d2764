package gardener

import (
	"errors"
	"fmt"
	"regexp"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/environment-broker/environment-broker/internal/failure"
)

const notAsItShould = "Gardener does not respond correctly"

// explain turns an error of Gardener's API into one of package failure, with the action in its text. Nil stays nil.
func explain(err error, doing string, args ...any) error {
	if err == nil {
		return nil
	}

	// The limit and the circuit breaker reject requests with errors of their own.
	if known, ok := errors.AsType[*failure.Error](err); ok {
		return failure.Wrap(known.Kind, err, "%s: %s", fmt.Sprintf(doing, args...), known.Text).WithReason(known.Reason, known.Component)
	}

	kind, said := meant(err)

	// The message of the API server is for the owner of the object; that of a transport may name internal addresses.
	text := fmt.Sprintf(doing, args...) + ": " + said

	var status apierrors.APIStatus
	if errors.As(err, &status) {
		text += ": " + status.Status().Message
	}

	return failure.Wrap(kind, err, "%s", text).WithReason(reasonOf(err), failure.ComponentGardenerClient)
}

// meant classifies an error of the API. A rejected account of the Provisioner is transient: operations continue once an operator has corrected
// its credentials or permissions.
func meant(err error) (kind failure.Kind, said string) {
	switch {
	case apierrors.HasStatusCause(err, metav1.CauseTypeUnexpectedServerResponse):
		// Not an API server, or one that does not serve Shoots. As an answer of Gardener, its 404 would mean that an existing cluster is
		// gone.
		return failure.Transient, notAsItShould
	case apierrors.IsNotFound(err):
		return failure.NotFound, "Gardener has no such object"
	case apierrors.IsInvalid(err), apierrors.IsBadRequest(err), apierrors.IsRequestEntityTooLargeError(err):
		return failure.Invalid, "Gardener rejects it"
	case apierrors.IsForbidden(err):
		return forbidden(err)
	case apierrors.IsUnauthorized(err):
		return failure.Transient, "Gardener does not know the Provisioner's account: renew the credentials in its kubeconfig"
	case apierrors.IsConflict(err):
		return failure.Transient, "it has changed in the meantime"
	case apierrors.IsAlreadyExists(err):
		return failure.Conflict, "it exists already"
	default:
		return failure.Transient, notAsItShould
	}
}

// forbidden distinguishes the causes of HTTP 403: a missing permission, an exhausted quota, a rejected object. An API server that has just
// started forbids everything until it has read its rules.
func forbidden(err error) (kind failure.Kind, said string) {
	text := strings.ToLower(err.Error())

	switch {
	case strings.Contains(text, "not yet ready to handle request"):
		return failure.Transient, "Gardener is not ready yet"
	case strings.Contains(text, "exceeded quota"), strings.Contains(text, "quota limits exceeded"):
		return failure.Quota, "a quota of the Gardener project is exhausted: raise it or remove unused clusters, then retry"
	case regexp.MustCompile(`user "[^"]*" cannot \w+ resource`).MatchString(text):
		return failure.Transient, "the Provisioner's account lacks a permission in Gardener: grant it"
	default:
		return failure.Invalid, "Gardener rejects it"
	}
}

func reasonOf(err error) string {
	if reason := apierrors.ReasonForError(err); reason != "" {
		return string(reason)
	}

	return failure.ReasonInternal
}
