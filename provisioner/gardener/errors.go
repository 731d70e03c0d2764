package gardener

import (
	"errors"
	"fmt"
	"regexp"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/environment-broker/environment-broker/internal/failure"
	"github.com/environment-broker/environment-broker/internal/upstream/graphqlclient"
)

// misbehaving is the text for errors that are not decisions of Gardener: timeouts, broken connections and internal errors.
const misbehaving = "Gardener does not respond correctly"

// explain converts an error from Gardener's API to a failure.Error, and nil to nil. doing and args describe the failed action,
// such as "reading the Shoot".
func explain(err error, doing string, args ...any) error {
	if err == nil {
		return nil
	}

	// The concurrency limit and the circuit breaker reject requests with a failure.Error.
	if typed, ok := errors.AsType[*failure.Error](err); ok {
		return failure.Wrap(typed.Kind, err, "%s: %s", fmt.Sprintf(doing, args...), typed.Text).WithReason(typed.Reason, typed.Component)
	}

	kind, said := classify(err)

	// Users see the message of the API server, which is meant for them. They see neither transport errors, which may contain internal
	// addresses, nor responses of other servers, which client-go quotes in the message.
	text := fmt.Sprintf(doing, args...) + ": " + said

	var status apierrors.APIStatus

	switch {
	case !errors.As(err, &status):
	case apierrors.HasStatusCause(err, metav1.CauseTypeUnexpectedServerResponse):
		text += fmt.Sprintf(": HTTP status %d", status.Status().Code)
	default:
		text += ": " + graphqlclient.Excerpt(status.Status().Message)
	}

	return failure.Wrap(kind, err, "%s", text).WithReason(reasonOf(err), failure.ComponentGardenerClient)
}

// classify returns the kind of an API error, and a clause about it for users. Rejected credentials and missing permissions of the
// Provisioner are transient: operations continue after an operator has corrected them.
func classify(err error) (kind failure.Kind, said string) {
	switch {
	case apierrors.HasStatusCause(err, metav1.CauseTypeUnexpectedServerResponse):
		// The server is not an API server, or does not serve Shoots. If its HTTP 404 counted as NotFound, the Provisioner would
		// treat an existing cluster as deleted.
		return failure.Transient, misbehaving
	case apierrors.IsNotFound(err):
		return failure.NotFound, "Gardener has no such object"
	case apierrors.IsInvalid(err), apierrors.IsBadRequest(err), apierrors.IsRequestEntityTooLargeError(err):
		return failure.Invalid, "Gardener rejects it"
	case apierrors.IsForbidden(err):
		return forbidden(err)
	case apierrors.IsUnauthorized(err):
		return failure.Transient, "Gardener does not accept the Provisioner's credentials: renew them in its kubeconfig"
	case apierrors.IsConflict(err):
		return failure.Transient, "it has changed in the meantime"
	case apierrors.IsAlreadyExists(err):
		return failure.Conflict, "it already exists"
	default:
		return failure.Transient, misbehaving
	}
}

// forbidden distinguishes the causes of HTTP 403 by the message: a missing permission, an exhausted quota, or an object that an
// admission plugin rejects. An API server that is starting forbids every request until it has read its authorization rules.
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

// reasonOf returns the reason in the API server's status, or ReasonInternal for other errors.
func reasonOf(err error) string {
	if reason := apierrors.ReasonForError(err); reason != "" {
		return string(reason)
	}

	return failure.ReasonInternal
}
