package gardenlet

import (
	"time"

	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
)

const (
	// steps is how many times an operation reports progress before it is complete.
	steps = 5
	// stuckAfter is the step in which FaultStuck holds an operation.
	stuckAfter = 2
	// stuckPoll is how often a stuck operation asks, at least, whether its fault was taken back.
	stuckPoll = 200 * time.Millisecond
	// rateLimitedFor says how many times as long as it normally takes an operation is held up by FaultRateLimit.
	rateLimitedFor = 2

	complete int32 = 100
)

// standing is where an operation stands at some time after it began.
type standing struct {
	state    gardencorev1beta1.LastOperationState
	progress int32
	// failure says what went wrong, code what kind of problem that is; both are empty if nothing did.
	failure string
	code    gardencorev1beta1.ErrorCode
	// next is after which time the operation stands elsewhere; zero: not before the Shoot changes.
	next time.Duration
}

// standingAfter says where an operation stands that began elapsed ago, takes duration and suffers from fault.
func standingAfter(elapsed, duration time.Duration, fault Fault) standing {
	switch fault {
	case "", FaultSpent: // Nothing is in the way.
	case FaultFailOnce:
		return failingHalfway(elapsed, duration, "", "the machines of the cluster did not join in time (ordered fault)")
	case FaultQuota:
		return failingHalfway(elapsed, duration, gardencorev1beta1.ErrorInfraQuotaExceeded,
			"quota 'CPUs' exceeded: limit 0 in this region (ordered fault)")
	case FaultStuck:
		if now := undisturbed(elapsed, duration); now.progress < progressAt(stuckAfter) {
			return now
		}
		return standing{
			state:    gardencorev1beta1.LastOperationStateProcessing,
			progress: progressAt(stuckAfter),
			next:     max(duration/steps, stuckPoll),
		}
	case FaultRateLimit:
		if limited := rateLimitedFor * duration; elapsed < limited {
			return standing{
				state:   gardencorev1beta1.LastOperationStateError,
				failure: "the provider throttles requests: rate limit exceeded (ordered fault)",
				code:    gardencorev1beta1.ErrorInfraRateLimitsExceeded,
				next:    limited - elapsed,
			}
		}
		return undisturbed(elapsed-rateLimitedFor*duration, duration)
	}
	return undisturbed(elapsed, duration)
}

func undisturbed(elapsed, duration time.Duration) standing {
	if elapsed >= duration {
		return standing{state: gardencorev1beta1.LastOperationStateSucceeded, progress: complete}
	}
	step := max(duration/steps, 1)
	done := min(int64(max(elapsed, 0)/step), steps-1)
	return standing{
		state:    gardencorev1beta1.LastOperationStateProcessing,
		progress: progressAt(done),
		next:     min(step-elapsed%step, duration-elapsed),
	}
}

func failingHalfway(elapsed, duration time.Duration, code gardencorev1beta1.ErrorCode, failure string) standing {
	half := duration / 2
	if elapsed >= half {
		return standing{
			state:    gardencorev1beta1.LastOperationStateFailed,
			progress: complete / 2,
			failure:  failure,
			code:     code,
		}
	}
	now := undisturbed(elapsed, duration)
	now.next = min(now.next, half-elapsed)
	return now
}

// progressAt returns the percentage that an operation reports after that many steps.
func progressAt(done int64) int32 {
	return int32(done) * complete / steps //nolint:gosec // done is at most steps
}
