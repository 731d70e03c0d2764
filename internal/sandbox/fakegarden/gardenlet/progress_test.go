package gardenlet

import (
	"testing"
	"time"

	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	"github.com/google/go-cmp/cmp"
)

func TestProgressAfter(t *testing.T) {
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
		{"an operation starts at 0 %", "", 0, seen{State: processing, Next: 2 * second}},
		{"progress is reported in steps", "", 3 * second, seen{State: processing, Progress: 20, Next: second}},
		{"the last step ends with the operation", "", 9 * second, seen{State: processing, Progress: 80, Next: second}},
		{"the operation is complete after its duration", "", duration, seen{State: succeeded, Progress: 100}},
		{"the operation stays complete", "", time.Hour, seen{State: succeeded, Progress: 100}},
		{"a clock that was set back is tolerated", "", -second, seen{State: processing, Next: 3 * second}},
		{"the operation does not fail immediately", FaultFailOnce, 4 * second, seen{State: processing, Progress: 40, Next: second}},
		{"the operation fails halfway", FaultFailOnce, 5 * second, seen{State: failed, Progress: 50, Failure: true}},
		{"a spent fault has no effect", FaultSpent, duration, seen{State: succeeded, Progress: 100}},
		{
			"an exceeded quota is permanent", FaultQuota, time.Hour,
			seen{State: failed, Progress: 50, Failure: true, Code: gardencorev1beta1.ErrorInfraQuotaExceeded},
		},
		{"a stuck operation starts normally", FaultStuck, 3 * second, seen{State: processing, Progress: 20, Next: second}},
		{"a stuck operation checks whether the fault was removed", FaultStuck, time.Hour, seen{State: processing, Progress: 40, Next: 2 * second}},
		{
			"a rate limit delays an operation by two times its duration", FaultRateLimit, 5 * second,
			seen{State: waits, Failure: true, Code: gardencorev1beta1.ErrorInfraRateLimitsExceeded, Next: 15 * second},
		},
		{"the operation starts after the rate limit", FaultRateLimit, 20 * second, seen{State: processing, Next: 2 * second}},
		{"after the rate limit, the operation takes its usual time", FaultRateLimit, 30 * second, seen{State: succeeded, Progress: 100}},
	}
	for _, test := range tests {
		t.Run(test.reason, func(t *testing.T) {
			now := progressAfter(test.elapsed, duration, test.fault)
			got := seen{State: now.state, Progress: now.percent, Code: now.code, Failure: now.failure != "", Next: now.next}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

func TestOperationWithoutDuration(t *testing.T) {
	for _, fault := range []Fault{"", FaultSpent, FaultRateLimit} {
		if now := progressAfter(0, 0, fault); now.state != gardencorev1beta1.LastOperationStateSucceeded {
			t.Errorf("with fault %q, an operation that takes no time is in state %s", fault, now.state)
		}
	}
}
