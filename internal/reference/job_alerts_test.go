package main

import (
	"slices"
	"testing"
	"time"

	"github.com/prometheus/prometheus/model/labels"
)

// TestDailyJobsThatFail evaluates the alert JobFails for a job that runs once a day. Its second run starts late, because the job waits up
// to an hour for a replica. A single failed run must not fire the alert, because the error may be gone in the next run.
func TestDailyJobsThatFail(t *testing.T) {
	t.Parallel()

	const late = 25*time.Hour + 5*time.Minute // the end of the second run, after the end of the first

	for name, test := range map[string]struct {
		reason     string
		failsAgain bool
		wantAtLast bool
	}{
		"OneRun":  {reason: "the second run succeeds"},
		"TwoRuns": {reason: "the second run fails too", failsAgain: true, wantAtLast: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			rules := loadAlerts(t)

			firing := false

			for after := time.Duration(0); after < 2*late; after += time.Minute {
				failing := 0.0
				if after < late || test.failsAgain {
					failing = 1
				}

				at := time.Unix(0, 0).Add(after)
				rules.Samples.Add(at, labels.FromStrings("__name__", "environment_broker_job_failing", "job", "broker", "name", "expiry"), failing)

				if after%(5*time.Minute) != 0 {
					continue
				}

				alerts, err := rules.Evaluate(t.Context(), "environment-broker", at)
				if err != nil {
					t.Fatal(err)
				}

				firing = slices.Contains(alerts, "JobFails")
				if firing && after <= late {
					t.Fatalf("%s: the alert fires %s after the first run, before the second one has ended", test.reason, after)
				}
			}

			if firing != test.wantAtLast {
				t.Errorf("%s: at the end, the alert fires: %t, want %t", test.reason, firing, test.wantAtLast)
			}
		})
	}
}
