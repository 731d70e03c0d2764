package gardenlet

import (
	"time"

	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
)

const (
	// steps is the number of progress reports before an operation is complete. More reports would only add load on the API server:
	// the Provisioner waits for the end of the operation, and only people read the percentage.
	steps = 5
	// stuckAfter is the step at which FaultStuck stops an operation.
	stuckAfter = 2
	// stuckPoll is the minimum delay before a stuck operation checks whether its fault was removed.
	stuckPoll = 200 * time.Millisecond
	// rateLimitedFor is how long FaultRateLimit delays an operation, as a multiple of the operation's duration.
	rateLimitedFor = 2

	complete int32 = 100
)

// progress is the state of an operation at a given time after its start. It depends only on the elapsed time, the duration and
// the fault, not on earlier reports, so a restarted gardenlet reports the same progress.
type progress struct {
	state   gardencorev1beta1.LastOperationState
	percent int32
	// failure is an error message, or empty if there is no error. code is Gardener's category for the error, if it has one.
	failure string
	code    gardencorev1beta1.ErrorCode
	// next is the time until the progress changes, or 0 if the operation waits for a change of the Shoot.
	next time.Duration
}

// progressAfter returns the progress of an operation with the given duration and fault after the elapsed time. A negative elapsed
// time, which occurs when the clock is set back, is treated as 0.
func progressAfter(elapsed, duration time.Duration, fault Fault) progress {
	switch fault {
	case "", FaultSpent: // no fault
	case FaultFailOnce:
		return failingHalfway(elapsed, duration, "", "the machines of the cluster did not join in time (injected fault)")
	case FaultQuota:
		return failingHalfway(elapsed, duration, gardencorev1beta1.ErrorInfraQuotaExceeded,
			"quota 'CPUs' exceeded: limit 0 in this region (injected fault)")
	case FaultStuck:
		if now := faultless(elapsed, duration); now.percent < progressAt(stuckAfter) {
			return now
		}
		return progress{
			state:   gardencorev1beta1.LastOperationStateProcessing,
			percent: progressAt(stuckAfter),
			next:    max(duration/steps, stuckPoll),
		}
	case FaultRateLimit:
		if limited := rateLimitedFor * duration; elapsed < limited {
			return progress{
				state:   gardencorev1beta1.LastOperationStateError,
				failure: "the provider throttles requests: rate limit exceeded (injected fault)",
				code:    gardencorev1beta1.ErrorInfraRateLimitsExceeded,
				next:    limited - elapsed,
			}
		}
		return faultless(elapsed-rateLimitedFor*duration, duration)
	}
	return faultless(elapsed, duration)
}

// faultless returns the progress of an operation without a fault. The percentage increases in equal steps. The operation succeeds
// when its duration has elapsed.
func faultless(elapsed, duration time.Duration) progress {
	if elapsed >= duration {
		return progress{state: gardencorev1beta1.LastOperationStateSucceeded, percent: complete}
	}
	step := max(duration/steps, 1)
	done := min(int64(max(elapsed, 0)/step), steps-1)
	return progress{
		state:   gardencorev1beta1.LastOperationStateProcessing,
		percent: progressAt(done),
		next:    min(step-elapsed%step, duration-elapsed),
	}
}

// failingHalfway returns the progress of an operation that fails after half of its duration. Before that, it looks like a
// successful operation. The Failed state is final: only a retry by annotation or a change of the spec starts another operation.
func failingHalfway(elapsed, duration time.Duration, code gardencorev1beta1.ErrorCode, failure string) progress {
	half := duration / 2
	if elapsed >= half {
		return progress{
			state:   gardencorev1beta1.LastOperationStateFailed,
			percent: complete / 2,
			failure: failure,
			code:    code,
		}
	}
	now := faultless(elapsed, duration)
	now.next = min(now.next, half-elapsed)
	return now
}

// progressAt returns the percentage after the given number of steps.
func progressAt(done int64) int32 {
	return int32(done) * complete / steps //nolint:gosec // done is at most steps
}
