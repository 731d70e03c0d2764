package gardenlet

import (
	"testing"
	"time"

	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	"github.com/google/go-cmp/cmp"
)

func TestStandingAfter(t *testing.T) {
	const (
		second     = time.Second
		duration   = 10 * second
		processing = gardencorev1beta1.LastOperationStateProcessing
		succeeded  = gardencorev1beta1.LastOperationStateSucceeded
		failed     = gardencorev1beta1.LastOperationStateFailed
		waits      = gardencorev1beta1.LastOperationStateError
	)
	type seen struct {
		State    gardencorev1beta1.LastOperationState
		Progress int32
		Code     gardencorev1beta1.ErrorCode
		Failure  bool
		Next     time.Duration
	}
	tests := []struct {
		reason  string
		fault   Fault
		elapsed time.Duration
		want    seen
	}{
		{"an operation begins at nothing", "", 0, seen{State: processing, Next: 2 * second}},
		{"progress comes in steps", "", 3 * second, seen{State: processing, Progress: 20, Next: second}},
		{"the last step ends with the operation", "", 9 * second, seen{State: processing, Progress: 80, Next: second}},
		{"it is complete when its time is over", "", duration, seen{State: succeeded, Progress: 100}},
		{"it is complete, however late one looks", "", time.Hour, seen{State: succeeded, Progress: 100}},
		{"a clock that runs behind does no harm", "", -second, seen{State: processing, Next: 3 * second}},
		{"a failure does not come at once", FaultFailOnce, 4 * second, seen{State: processing, Progress: 40, Next: second}},
		{"a failure comes halfway", FaultFailOnce, 5 * second, seen{State: failed, Progress: 50, Failure: true}},
		{"a spent failure is none", FaultSpent, duration, seen{State: succeeded, Progress: 100}},
		{
			"an exceeded quota is for good", FaultQuota, time.Hour,
			seen{State: failed, Progress: 50, Failure: true, Code: gardencorev1beta1.ErrorInfraQuotaExceeded},
		},
		{"what gets stuck begins as usual", FaultStuck, 3 * second, seen{State: processing, Progress: 20, Next: second}},
		{"what is stuck is looked at again, the fault may go", FaultStuck, time.Hour, seen{State: processing, Progress: 40, Next: 2 * second}},
		{
			"a rate limit holds up for twice the time", FaultRateLimit, 5 * second,
			seen{State: waits, Failure: true, Code: gardencorev1beta1.ErrorInfraRateLimitsExceeded, Next: 15 * second},
		},
		{"after a rate limit the operation begins", FaultRateLimit, 20 * second, seen{State: processing, Next: 2 * second}},
		{"after a rate limit the operation takes its time", FaultRateLimit, 30 * second, seen{State: succeeded, Progress: 100}},
	}
	for _, test := range tests {
		t.Run(test.reason, func(t *testing.T) {
			now := standingAfter(test.elapsed, duration, test.fault)
			got := seen{State: now.state, Progress: now.progress, Code: now.code, Failure: now.failure != "", Next: now.next}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

func TestStandingAfterOfNoDuration(t *testing.T) {
	for _, fault := range []Fault{"", FaultSpent, FaultRateLimit} {
		if now := standingAfter(0, 0, fault); now.state != gardencorev1beta1.LastOperationStateSucceeded {
			t.Errorf("with fault %q an operation that takes no time is %s", fault, now.state)
		}
	}
}
