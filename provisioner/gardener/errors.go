package gardener

import (
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/environment-broker/environment-broker/internal/failure"
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
	known := failure.Wrap(kind, err, "%s: %s", fmt.Sprintf(doing, args...), said).WithReason(reasonOf(err), failure.ComponentGardenerClient)

	var status apierrors.APIStatus

	switch {
	case !errors.As(err, &status): // transport errors may contain internal addresses, so only the log shows them
	case apierrors.HasStatusCause(err, metav1.CauseTypeUnexpectedServerResponse): // client-go quotes the response of another server
		known.Text += fmt.Sprintf(": HTTP status %d", status.Status().Code)
	default:
		return known.WithDetail(status.Status().Message)
	}

	return known
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
		return failure.Invalid, explanation(err)
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

// forbidden classifies an error with HTTP status 403. If the cause is unknown, it returns failure.Invalid, as for a rejected
// object.
func forbidden(err error) (kind failure.Kind, said string) {
	if kind, said, known := failure.Forbidden(err.Error()); known {
		return kind, said
	}

	return failure.Invalid, explanation(err)
}

// explanation explains to users why Gardener rejected a request.
func explanation(err error) string {
	return failure.Explanation(failure.ComponentGardenerClient, reasonOf(err), err.Error())
}

// reasonOf returns the reason in the API server's status, or ReasonInternal for other errors.
func reasonOf(err error) string {
	if reason := apierrors.ReasonForError(err); reason != "" {
		return string(reason)
	}

	return failure.ReasonInternal
}
