package gardener

import (
	"fmt"
	"slices"
	"strings"

	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"

	"github.com/environment-broker/environment-broker/internal/failure"
)

// Progress is how far Gardener is with a Shoot.
type Progress struct {
	// Done says that the Shoot is as its spec wants it.
	Done bool
	// Message says, for people, what Gardener does or waits for.
	Message string
	// Stopped says that Gardener does not go on by itself but may succeed when asked to retry.
	Stopped bool
	// Err, if set, is why Gardener gave up for good.
	Err error
}

// passing are the codes of errors that pass without anybody's help.
func passing(code gardencorev1beta1.ErrorCode) bool {
	switch code {
	case gardencorev1beta1.ErrorInfraRateLimitsExceeded, gardencorev1beta1.ErrorRetryableInfraDependencies,
		gardencorev1beta1.ErrorRetryableConfigurationProblem:
		return true
	default:
		return false
	}
}

// TakenUp reports whether Gardener works, or has worked, on the newest generation of the Shoot.
func TakenUp(shoot *gardencorev1beta1.Shoot) bool {
	return shoot.Status.LastOperation != nil && shoot.Status.ObservedGeneration >= shoot.Generation
}

// ProgressOf reads the Shoot's status. Gardener retries an operation in state Error by itself, so that is still under way; in state
// Failed it has stopped.
func ProgressOf(shoot *gardencorev1beta1.Shoot) Progress {
	last := shoot.Status.LastOperation
	if !TakenUp(shoot) {
		return Progress{Message: "Gardener has not taken up the cluster yet"}
	}

	switch last.State {
	case gardencorev1beta1.LastOperationStateSucceeded:
		return Progress{Done: true, Message: last.Description}
	case gardencorev1beta1.LastOperationStateFailed:
		return failed(shoot)
	case gardencorev1beta1.LastOperationStateError:
		return Progress{Message: fmt.Sprintf("Gardener is at %d%% and tries again: %s", last.Progress, problems(shoot))}
	default:
		return Progress{Message: fmt.Sprintf("Gardener is at %d%%: %s", last.Progress, last.Description)}
	}
}

func failed(shoot *gardencorev1beta1.Shoot) Progress {
	found := codes(shoot)
	said := problems(shoot)

	if len(found) > 0 && !slices.ContainsFunc(found, func(code gardencorev1beta1.ErrorCode) bool { return !passing(code) }) {
		return Progress{Stopped: true, Message: "Gardener stopped and is asked to go on: " + said}
	}

	kind := failure.Permanent

	switch {
	case slices.Contains(found, gardencorev1beta1.ErrorInfraQuotaExceeded),
		slices.Contains(found, gardencorev1beta1.ErrorInfraResourcesDepleted):
		kind = failure.Quota
	case slices.Contains(found, gardencorev1beta1.ErrorInfraUnauthenticated),
		slices.Contains(found, gardencorev1beta1.ErrorInfraUnauthorized):
		kind = failure.Denied
	}

	reason := "Failed"
	if len(found) > 0 {
		texts := make([]string, 0, len(found))
		for _, code := range found {
			texts = append(texts, string(code))
		}

		reason = strings.Join(texts, ", ")
	}

	return Progress{
		Message: said,
		Err: failure.New(kind, "Gardener could not make the cluster %q: %s", shoot.Name, said).
			Because(reason, failure.ComponentGardener),
	}
}

// codes are the codes of the last errors, each once.
func codes(shoot *gardencorev1beta1.Shoot) []gardencorev1beta1.ErrorCode {
	var found []gardencorev1beta1.ErrorCode

	for _, problem := range shoot.Status.LastErrors {
		for _, code := range problem.Codes {
			if !slices.Contains(found, code) {
				found = append(found, code)
			}
		}
	}

	return found
}

// problems are the texts of the last errors, or the description of the last operation.
func problems(shoot *gardencorev1beta1.Shoot) string {
	texts := make([]string, 0, len(shoot.Status.LastErrors))
	for _, problem := range shoot.Status.LastErrors {
		texts = append(texts, problem.Description)
	}

	if len(texts) == 0 {
		return shoot.Status.LastOperation.Description
	}

	return strings.Join(texts, "; ")
}
