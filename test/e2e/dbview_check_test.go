//go:build garden

package e2e

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/environment-broker/environment-broker/process"
)

// TestTimelineViolations checks that violations reports each kind of invalid timeline.
func TestTimelineViolations(t *testing.T) {
	accepted := process.Entry{Outcome: process.Accepted}
	ended := process.Entry{Outcome: process.OperationSucceeded}
	in := func(stage string, outcome process.Outcome) process.Entry {
		return process.Entry{Stage: stage, Step: "step of " + stage, Outcome: outcome}
	}

	cases := map[string]struct {
		reason   string
		timeline []process.Entry
		want     []string
	}{
		"valid": {
			"a stage repeats until it is done, even on another replica",
			[]process.Entry{accepted, in("a", process.Retrying), {Outcome: process.TakenOver}, in("a", process.Done), in("b", process.Done), ended},
			nil,
		},
		"finished stage again": {
			"a finished stage never runs again",
			[]process.Entry{accepted, in("a", process.Done), in("b", process.Waiting), in("a", process.Done), in("b", process.Done), ended},
			[]string{"runs a again", "enters a again"},
		},
		"finished stage repeated directly": {
			"a finished stage never runs again, not even directly",
			[]process.Entry{accepted, in("a", process.Done), in("a", process.Done), in("b", process.Done), ended},
			[]string{"runs a again"},
		},
		"no start": {"every timeline starts with an accepted entry", []process.Entry{in("a", process.Done), ended}, []string{"does not start with its acceptance"}},
		"no end":   {"the timeline of an ended operation ends with the final outcome", []process.Entry{accepted, in("a", process.Done)}, []string{"is succeeded and ends with done"}},
		"two starts": {
			"an operation is accepted once; repeated requests return the existing operation",
			[]process.Entry{accepted, accepted, ended},
			[]string{"is accepted twice"},
		},
		"after the end": {
			"no entry follows the final outcome",
			[]process.Entry{accepted, ended, in("a", process.Done), ended},
			[]string{"continues after its end"},
		},
	}

	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			got := violations(process.Record{State: process.Succeeded, FinishedStages: []string{"a", "b"}}, c.timeline)
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("%s: -want +got:\n%s", c.reason, diff)
			}
		})
	}
}

func TestDelay(t *testing.T) {
	at := func(seconds int) time.Time { return time.Unix(int64(seconds), 0) }

	timeline := []process.Entry{
		{Outcome: process.Accepted, Began: at(0), End: at(0)},
		{Outcome: process.Done, Began: at(1), End: at(10)}, // one second late
		{Outcome: process.Waiting, Began: at(10), End: at(11), NextRun: at(40)},
		{Outcome: process.Waiting, Began: at(20), End: at(21), NextRun: at(50)}, // an event wakes the operation early
		{Outcome: process.Done, Began: at(53), End: at(54)},                     // three seconds late
		{Outcome: process.OperationSucceeded, Began: at(54), End: at(54)},
	}

	if got := delay(timeline); got != 3*time.Second {
		t.Errorf("the operation was delayed by %s, want 3s: planned waits do not count", got)
	}
}
