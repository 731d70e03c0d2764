package gardenclient

import (
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/environment-broker/environment-broker/internal/failure"
)

// explain converts an error from Gardener's API to a failure.Error. It returns nil for nil. doing and args describe the failed
// action.
func explain(err error, doing string, args ...any) error {
	if err == nil {
		return nil
	}

	text := fmt.Sprintf(doing, args...)

	// The concurrency limit and the circuit breaker reject requests with a failure.Error.
	if typed, ok := errors.AsType[*failure.Error](err); ok {
		return failure.Wrap(typed.Kind, err, "%s: %s", text, typed.Text).WithReason(typed.Reason, typed.Component)
	}

	kind, said := classify(err)

	reason := string(apierrors.ReasonForError(err))
	if reason == "" {
		reason = failure.ReasonInternal
	}

	known := failure.Wrap(kind, err, "%s: %s", text, said).WithReason(reason, failure.ComponentGardenerClient)

	// Operators see the message of the API server. Transport errors and responses of other servers appear only in the log.
	var status apierrors.APIStatus
	if errors.As(err, &status) && !apierrors.HasStatusCause(err, metav1.CauseTypeUnexpectedServerResponse) {
		return known.WithDetail(status.Status().Message)
	}

	return known
}

// classify returns the kind of an API error, and a clause that describes the error. Rejected credentials and missing permissions
// are transient: operations continue after an operator has corrected them.
func classify(err error) (failure.Kind, string) {
	switch {
	case apierrors.HasStatusCause(err, metav1.CauseTypeUnexpectedServerResponse):
		// The server is not an API server of Gardener, or does not serve the kind. Its 404 does not mean that an account is
		// missing.
		return failure.Transient, "Gardener does not serve the request; check APP_GARDENER_KUBECONFIG_PATH and APP_ACCOUNT_POOL_BINDING_KIND"
	case apierrors.IsNotFound(err):
		return failure.NotFound, "Gardener has no such object"
	case apierrors.IsConflict(err):
		return failure.Conflict, "it has changed in the meantime"
	case apierrors.IsUnauthorized(err):
		return failure.Transient, "Gardener does not accept the broker's credentials: renew them in its kubeconfig"
	case apierrors.IsForbidden(err):
		return forbidden(err)
	case apierrors.IsInvalid(err), apierrors.IsBadRequest(err):
		return failure.Invalid, "Gardener rejects it"
	default:
		return failure.Transient, "Gardener does not respond correctly"
	}
}

// forbidden returns the kind of an HTTP 403 error, and a clause that describes the error. If the cause is not recognized, the
// error is transient: a rule of the landscape probably forbids a label, and the operators of the landscape can change the rule.
func forbidden(err error) (failure.Kind, string) {
	if kind, said, known := failure.Forbidden(err.Error()); known {
		return kind, said
	}

	return failure.Transient, "Gardener forbids the request: an operator must allow it"
}
