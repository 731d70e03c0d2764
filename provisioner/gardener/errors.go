package gardener

import (
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/environment-broker/environment-broker/internal/failure"
)

// explain turns an error of Gardener's API into one that says what it means and what was being done. Nil stays nil.
func explain(err error, doing string, args ...any) error {
	if err == nil {
		return nil
	}

	// A request that was not let through explains itself.
	if known, ok := errors.AsType[*failure.Error](err); ok {
		return failure.Wrap(known.Kind, err, "%s: %s", fmt.Sprintf(doing, args...), known.Text).Because(known.Reason, known.Component)
	}

	kind, said := failure.Transient, "Gardener does not answer as it should"

	switch {
	case apierrors.IsNotFound(err):
		kind, said = failure.NotFound, "Gardener has no such object"
	case apierrors.IsInvalid(err), apierrors.IsBadRequest(err), apierrors.IsRequestEntityTooLargeError(err):
		kind, said = failure.Invalid, "Gardener refuses it"
	case apierrors.IsForbidden(err), apierrors.IsUnauthorized(err):
		kind, said = failure.Denied, "Gardener forbids it"
	case apierrors.IsConflict(err):
		said = "it has changed meanwhile"
	case apierrors.IsAlreadyExists(err):
		kind, said = failure.Conflict, "it exists already"
	}

	// What the API server says about an object is for its owner; what a transport says may name internal addresses.
	text := fmt.Sprintf(doing, args...) + ": " + said

	var status apierrors.APIStatus
	if errors.As(err, &status) {
		text += ": " + status.Status().Message
	}

	return failure.Wrap(kind, err, "%s", text).Because(reasonOf(err), failure.ComponentGardenerClient)
}

func reasonOf(err error) string {
	if reason := apierrors.ReasonForError(err); reason != "" {
		return string(reason)
	}

	return failure.ReasonInternal
}
