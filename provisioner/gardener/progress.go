package gardener

import (
	"fmt"
	"time"

	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"

	"github.com/environment-broker/environment-broker/internal/failure"
	"github.com/environment-broker/environment-broker/internal/upstream"
)

// retryPause is the time between a Shoot's failure and the request to retry it. Causes such as rate limits need time to clear.
const retryPause = time.Minute

// Progress is the state of Gardener's work on a Shoot, derived from its status.
type Progress struct {
	// Done reports whether Gardener has reconciled the latest spec.
	Done bool
	// Message describes Gardener's current work and its errors in Gardener's words, for operators.
	Message string
	// Codes lists the Shoot's error codes, separated by commas.
	Codes string
	// Stopped reports whether Gardener has stopped after transient errors. The caller calls Retry once Rested returns true.
	Stopped bool
	// Err is the permanent failure of Gardener's operation, or nil.
	Err error
	// Updated is the time at which the status was last updated, from Gardener's clock.
	Updated time.Time
}

// Rested reports whether retryPause has passed since the failure, so that the caller may request a retry.
func (p Progress) Rested(now time.Time) bool { return !now.Before(p.Updated.Add(retryPause)) }

// TakenUp reports whether Gardener has started to reconcile the latest generation of the Shoot. Until then, the status describes
// an earlier generation and must not be used.
func TakenUp(shoot *gardencorev1beta1.Shoot) bool {
	return shoot.Status.LastOperation != nil && shoot.Status.ObservedGeneration >= shoot.Generation
}

// ProgressOf returns the progress that the status of the Shoot describes. In the state Error, Gardener retries by itself. In the
// state Failed, it has stopped until a retry is requested.
//
// The broker parses the percentage and the errors in Message: see provisionerwait.Summary.
func ProgressOf(shoot *gardencorev1beta1.Shoot) Progress {
	if !TakenUp(shoot) {
		return Progress{Message: "Gardener has not started to reconcile the cluster yet" + unscheduled(shoot)}
	}

	last := shoot.Status.LastOperation
	progress := Progress{Codes: reasonOfCodes(meaningsOf(shoot)), Updated: last.LastUpdateTime.Time}

	switch last.State {
	case gardencorev1beta1.LastOperationStateSucceeded:
		progress.Done, progress.Message = true, upstream.Excerpt(last.Description)
	case gardencorev1beta1.LastOperationStateFailed:
		// The error codes decide whether a retry can help.
		progress.fail(shoot)
	case gardencorev1beta1.LastOperationStateError:
		progress.Message = fmt.Sprintf("Gardener is at %d%% and retries: %s", last.Progress, problems(shoot))
	default:
		progress.Message = fmt.Sprintf("Gardener is at %d%%: %s", last.Progress, upstream.Excerpt(last.Description))
		// Earlier errors can explain slow progress even after Gardener has resumed its work.
		if len(shoot.Status.LastErrors) > 0 {
			progress.Message += "; earlier problems: " + problems(shoot)
		}
	}

	return progress
}

// unscheduled returns Gardener's reason why the Shoot has no Seed yet, or "".
func unscheduled(shoot *gardencorev1beta1.Shoot) string {
	last := shoot.Status.LastOperation
	if last == nil || last.State != gardencorev1beta1.LastOperationStatePending || last.Description == "" {
		return ""
	}

	return ": " + upstream.Excerpt(last.Description)
}

// fail records the failure of a Shoot in the state Failed: as Stopped if a retry can help, and otherwise as Err.
func (p *Progress) fail(shoot *gardencorev1beta1.Shoot) {
	meanings, said := meaningsOf(shoot), problems(shoot)

	if passes(meanings) {
		p.Stopped, p.Message = true, "Gardener has stopped; the Provisioner makes it retry: "+said

		return
	}

	reason := p.Codes
	if reason == "" {
		reason = "Failed"
	}

	p.Message = said
	// The explanation of the reason contains the remedies.
	p.Err = failure.Reported(kindOf(meanings), fmt.Sprintf("Gardener could not %s the cluster %q", verb(shoot), shoot.Name),
		failure.ComponentGardener, reason, descriptions(shoot))
}

// verb returns a verb for the Shoot's last operation, such as "create", for error messages.
func verb(shoot *gardencorev1beta1.Shoot) string {
	switch shoot.Status.LastOperation.Type {
	case gardencorev1beta1.LastOperationTypeCreate:
		return "create"
	case gardencorev1beta1.LastOperationTypeDelete:
		return "delete"
	default:
		return "change"
	}
}
