//go:build garden

package e2e

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/environment-broker/environment-broker/process"
)

// TestFaultsAreFound shows that what the stories look for in timelines would be found.
func TestFaultsAreFound(t *testing.T) {
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
		"as it should be": {
			"a stage begins anew until it is done, also on another replica",
			[]process.Entry{accepted, in("a", process.Retrying), {Outcome: process.TakenOver}, in("a", process.Done), in("b", process.Done), ended},
			nil,
		},
		"finished stage again": {
			"what is finished is never run again",
			[]process.Entry{accepted, in("a", process.Done), in("b", process.Waiting), in("a", process.Done), in("b", process.Done), ended},
			[]string{"runs a again", "enters a again"},
		},
		"finished stage at once again": {
			"what is finished is never run again, also not before something else runs",
			[]process.Entry{accepted, in("a", process.Done), in("a", process.Done), in("b", process.Done), ended},
			[]string{"runs a again"},
		},
		"no begin": {"every operation was accepted once", []process.Entry{in("a", process.Done), ended}, []string{"does not begin with its acceptance"}},
		"no end":   {"an operation that ended says so", []process.Entry{accepted, in("a", process.Done)}, []string{"is succeeded and ends with done"}},
		"two begins": {
			"a repeated request gets the operation that is there",
			[]process.Entry{accepted, accepted, ended},
			[]string{"is accepted twice"},
		},
		"after the end": {
			"a late write was not refused",
			[]process.Entry{accepted, ended, in("a", process.Done), ended},
			[]string{"goes on after its end"},
		},
	}

	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			got := faults(process.Record{State: process.Succeeded, FinishedStages: []string{"a", "b"}}, c.timeline)
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
		{Outcome: process.Done, Began: at(1), End: at(10)}, // one second in the queue
		{Outcome: process.Waiting, Began: at(10), End: at(11), NextRun: at(40)},
		{Outcome: process.Waiting, Began: at(20), End: at(21), NextRun: at(50)}, // was woken
		{Outcome: process.Done, Began: at(53), End: at(54)},                     // three seconds late
		{Outcome: process.OperationSucceeded, Began: at(54), End: at(54)},
	}

	if got := delay(timeline); got != 3*time.Second {
		t.Errorf("the operation was held up for %s, want 3s: what it waits for is no delay", got)
	}
}
