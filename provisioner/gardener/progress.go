package gardener

import (
	"fmt"
	"time"

	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"

	"github.com/environment-broker/environment-broker/internal/failure"
)

// breather is how long a Shoot is left alone that Gardener has given up, before it is asked to go on.
const breather = time.Minute

// Progress is how far Gardener is with a Shoot.
type Progress struct {
	// Done says that the Shoot is as its spec wants it.
	Done bool
	// Message says, for people, what Gardener does or waits for, and what it has met.
	Message string
	// Codes are those of what Gardener has met, comma-separated, or empty.
	Codes string
	// Stopped says that Gardener does not go on by itself but may succeed when asked to retry.
	Stopped bool
	// Err, if set, is why Gardener gave up for good.
	Err error
	// Updated is when Gardener told it.
	Updated time.Time
}

// Rested reports whether it is time to ask Gardener to go on: what has just gone wrong has had time to pass.
func (p Progress) Rested(now time.Time) bool { return !now.Before(p.Updated.Add(breather)) }

// TakenUp reports whether Gardener works, or has worked, on the newest generation of the Shoot.
func TakenUp(shoot *gardencorev1beta1.Shoot) bool {
	return shoot.Status.LastOperation != nil && shoot.Status.ObservedGeneration >= shoot.Generation
}

// ProgressOf reads the Shoot's status. Gardener retries an operation in state Error by itself, so that is still under way; in state
// Failed it has stopped.
func ProgressOf(shoot *gardencorev1beta1.Shoot) Progress {
	if !TakenUp(shoot) {
		return Progress{Message: "Gardener has not taken up the cluster yet" + unscheduled(shoot)}
	}

	last := shoot.Status.LastOperation
	progress := Progress{Codes: reasonOfCodes(found(shoot)), Updated: last.LastUpdateTime.Time}

	switch last.State {
	case gardencorev1beta1.LastOperationStateSucceeded:
		progress.Done, progress.Message = true, last.Description
	case gardencorev1beta1.LastOperationStateFailed:
		progress.fail(shoot)
	case gardencorev1beta1.LastOperationStateError:
		progress.Message = fmt.Sprintf("Gardener is at %d%% and tries again: %s", last.Progress, problems(shoot))
	default:
		progress.Message = fmt.Sprintf("Gardener is at %d%%: %s", last.Progress, last.Description)
		if len(shoot.Status.LastErrors) > 0 {
			progress.Message += ", after it has met: " + problems(shoot)
		}
	}

	return progress
}

// unscheduled says why no Seed has taken the Shoot, where Gardener tells.
func unscheduled(shoot *gardencorev1beta1.Shoot) string {
	last := shoot.Status.LastOperation
	if last == nil || last.State != gardencorev1beta1.LastOperationStatePending || last.Description == "" {
		return ""
	}

	return ": " + last.Description
}

// fail tells of a Shoot that Gardener has given up.
func (p *Progress) fail(shoot *gardencorev1beta1.Shoot) {
	met, said := found(shoot), problems(shoot)

	if passes(met) {
		p.Stopped, p.Message = true, "Gardener stopped and is asked to go on: "+said

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

// aim is what the last operation was to do with the cluster.
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
