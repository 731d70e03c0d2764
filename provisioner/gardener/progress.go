package gardener

import (
	"fmt"
	"time"

	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"

	"github.com/environment-broker/environment-broker/internal/failure"
)

// breather is the time between the failure of a Shoot and the request to retry it, so that a cause such as a rate limit can pass.
const breather = time.Minute

// Progress is the state of Gardener's work on a Shoot.
type Progress struct {
	// Done says that the Shoot matches its spec.
	Done bool
	// Message describes, for users, what Gardener does or waits for, and its errors.
	Message string
	// Codes are the error codes, comma-separated, or empty.
	Codes string
	// Stopped says that Gardener has stopped but may succeed when asked to retry.
	Stopped bool
	// Err is set if a retry cannot help.
	Err error
	// Updated is the time of Gardener's last update.
	Updated time.Time
}

// Rested reports whether it is time to ask Gardener to retry.
func (p Progress) Rested(now time.Time) bool { return !now.Before(p.Updated.Add(breather)) }

// TakenUp reports whether Gardener has started on the latest generation of the Shoot. Until then the status describes an earlier change.
func TakenUp(shoot *gardencorev1beta1.Shoot) bool {
	return shoot.Status.LastOperation != nil && shoot.Status.ObservedGeneration >= shoot.Generation
}

// ProgressOf reads the status of the Shoot. In state Error, Gardener retries by itself; in state Failed it has stopped.
func ProgressOf(shoot *gardencorev1beta1.Shoot) Progress {
	if !TakenUp(shoot) {
		return Progress{Message: "Gardener has not started with the cluster yet" + unscheduled(shoot)}
	}

	last := shoot.Status.LastOperation
	progress := Progress{Codes: reasonOfCodes(found(shoot)), Updated: last.LastUpdateTime.Time}

	switch last.State {
	case gardencorev1beta1.LastOperationStateSucceeded:
		progress.Done, progress.Message = true, last.Description
	case gardencorev1beta1.LastOperationStateFailed:
		progress.fail(shoot)
	case gardencorev1beta1.LastOperationStateError:
		progress.Message = fmt.Sprintf("Gardener is at %d%% and retries: %s", last.Progress, problems(shoot))
	default:
		progress.Message = fmt.Sprintf("Gardener is at %d%%: %s", last.Progress, last.Description)
		if len(shoot.Status.LastErrors) > 0 {
			progress.Message += ", after it has met: " + problems(shoot)
		}
	}

	return progress
}

// unscheduled returns the reason why the Shoot has no Seed, if Gardener reports one.
func unscheduled(shoot *gardencorev1beta1.Shoot) string {
	last := shoot.Status.LastOperation
	if last == nil || last.State != gardencorev1beta1.LastOperationStatePending || last.Description == "" {
		return ""
	}

	return ": " + last.Description
}

// fail completes the progress of a failed Shoot.
func (p *Progress) fail(shoot *gardencorev1beta1.Shoot) {
	met, said := found(shoot), problems(shoot)

	if passes(met) {
		p.Stopped, p.Message = true, "Gardener stopped and is asked to retry: "+said

		return
	}

	reason := p.Codes
	if reason == "" {
		reason = "Failed"
	}

	p.Message = said
	p.Err = failure.New(kindOf(met), "Gardener could not %s the cluster %q: %s", aim(shoot), shoot.Name, said).
		WithReason(reason, failure.ComponentGardener)
}

// aim names the last operation of the Shoot as a verb.
func aim(shoot *gardencorev1beta1.Shoot) string {
	switch shoot.Status.LastOperation.Type {
	case gardencorev1beta1.LastOperationTypeCreate:
		return "make"
	case gardencorev1beta1.LastOperationTypeDelete:
		return "remove"
	default:
		return "change"
	}
}
