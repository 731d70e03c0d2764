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

const notAsItShould = "Gardener does not answer as it should"

// explain turns an error of Gardener's API into one that says what it means and what was being done. Nil stays nil.
func explain(err error, doing string, args ...any) error {
	if err == nil {
		return nil
	}

	// A request that was not let through explains itself.
	if known, ok := errors.AsType[*failure.Error](err); ok {
		return failure.Wrap(known.Kind, err, "%s: %s", fmt.Sprintf(doing, args...), known.Text).WithReason(known.Reason, known.Component)
	}

	kind, said := meant(err)

	// What the API server says about an object is for its owner; what a transport says may name internal addresses.
	text := fmt.Sprintf(doing, args...) + ": " + said

	var status apierrors.APIStatus
	if errors.As(err, &status) {
		text += ": " + status.Status().Message
	}

	return failure.Wrap(kind, err, "%s", text).WithReason(reasonOf(err), failure.ComponentGardenerClient)
}

// meant says what an error of the API means. That the Provisioner's own account is refused passes: once its credentials or its rights are
// repaired, everything that waits goes on.
func meant(err error) (kind failure.Kind, said string) {
	switch {
	case apierrors.HasStatusCause(err, metav1.CauseTypeUnexpectedServerResponse):
		// It was no API server that answered, or one that does not offer Shoots: taken for an answer of Gardener's, a 404 would mean that
		// a cluster is gone which stands.
		return failure.Transient, notAsItShould
	case apierrors.IsNotFound(err):
		return failure.NotFound, "Gardener has no such object"
	case apierrors.IsInvalid(err), apierrors.IsBadRequest(err), apierrors.IsRequestEntityTooLargeError(err):
		return failure.Invalid, "Gardener refuses it"
	case apierrors.IsForbidden(err):
		return forbidden(err)
	case apierrors.IsUnauthorized(err):
		return failure.Transient, "Gardener does not know the Provisioner's account: renew the credentials in its kubeconfig"
	case apierrors.IsConflict(err):
		return failure.Transient, "it has changed meanwhile"
	case apierrors.IsAlreadyExists(err):
		return failure.Conflict, "it exists already"
	default:
		return failure.Transient, notAsItShould
	}
}

// forbidden tells apart what all bears the same status: who may not, what is used up, and what Gardener has against an object. API
// servers that have just started forbid everything until they have read what they judge by.
func forbidden(err error) (kind failure.Kind, said string) {
	text := strings.ToLower(err.Error())

	switch {
	case strings.Contains(text, "not yet ready to handle request"):
		return failure.Transient, "Gardener is not ready yet"
	case strings.Contains(text, "exceeded quota"), strings.Contains(text, "quota limits exceeded"):
		return failure.Quota, "a quota of the Gardener project is used up: raise it or remove clusters that are not needed, then retry"
	case regexp.MustCompile(`user "[^"]*" cannot \w+ resource`).MatchString(text):
		return failure.Transient, "the Provisioner's account lacks a right in Gardener: grant it"
	default:
		return failure.Invalid, "Gardener refuses it"
	}
}

func reasonOf(err error) string {
	if reason := apierrors.ReasonForError(err); reason != "" {
		return string(reason)
	}

	return failure.ReasonInternal
}
