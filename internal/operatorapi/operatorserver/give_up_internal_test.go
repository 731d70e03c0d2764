package operatorserver

import (
	"testing"
	"time"

	"github.com/environment-broker/environment-broker/process"
)

func TestGivesUpAt(t *testing.T) {
	t.Parallel()

	start := time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC)
	at := func(minutes int) time.Time { return start.Add(time.Duration(minutes) * time.Minute) }
	entry := func(minutes int, outcome process.Outcome) process.Entry {
		return process.Entry{Step: "Wait", Began: at(minutes), End: at(minutes + 1), Outcome: outcome}
	}
	a := New(Options{Processes: []process.Description{{Kind: "provision", Limit: 24 * time.Hour, Steps: []process.StepDescription{
		{Stage: "wait", Step: "Wait", OwnLimit: true, Notes: process.Notes{Limit: 6 * time.Hour}},
		{Stage: "order", Step: "Order", Notes: process.Notes{Limit: time.Hour}},
	}}}})

	cases := map[string]struct {
		reason   string
		step     string
		state    process.State
		began    time.Time
		timeline []process.Entry
		want     time.Time
	}{
		"first attempt": {
			"the first attempt runs", "Wait", process.InProgress, at(10), nil, at(10).Add(6 * time.Hour),
		},
		"waits": {
			"the limit of a step counts from its first attempt", "Wait", process.InProgress,
			time.Time{},
			[]process.Entry{entry(10, process.Waiting), entry(20, process.Retrying), entry(30, process.Waiting)},
			at(10).Add(6 * time.Hour),
		},
		"again": {
			"a success ends a series of attempts", "Wait", process.InProgress,
			time.Time{},
			[]process.Entry{entry(10, process.Waiting), entry(20, process.Done), entry(30, process.Waiting)},
			at(30).Add(6 * time.Hour),
		},
		"other steps": {
			"attempts of other steps do not count", "Order", process.InProgress,
			time.Time{},
			[]process.Entry{entry(10, process.Retrying)},
			start.Add(24 * time.Hour),
		},
		"limit of the operation": {
			"the operation ends first", "Wait", process.InProgress,
			time.Time{},
			[]process.Entry{entry(23*60, process.Waiting)},
			start.Add(24 * time.Hour),
		},
		"former step": {
			"the process no longer has the step", "Gone", process.InProgress, time.Time{}, nil, time.Time{},
		},
		"ended": {
			"the operation has ended", "Wait", process.Failed, time.Time{}, []process.Entry{entry(10, process.Waiting)}, time.Time{},
		},
		"pending": {
			"the operation has not started", "", process.Pending, time.Time{}, nil, time.Time{},
		},
	}

	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			record := process.Record{Kind: "provision", State: c.state, Step: c.step, StepBegan: c.began, StartedAt: start}
			if got := a.givesUpAt(record, seriesOf(record, c.timeline)); !got.Equal(c.want) {
				t.Errorf("%s: got %s, want %s", c.reason, got, c.want)
			}
		})
	}
}

// TestRetryWindow checks that the retry window counts from the first of the failed attempts at the end.
func TestRetryWindow(t *testing.T) {
	t.Parallel()

	start := time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC)
	a := New(Options{Processes: []process.Description{{Kind: "provision", Limit: 24 * time.Hour, Steps: []process.StepDescription{
		{Stage: "order", Step: "Order", Notes: process.Notes{Limit: time.Hour}},
	}}}})
	record := process.Record{Kind: "provision", State: process.InProgress, Step: "Order", StartedAt: start}

	var timeline []process.Entry

	for i, outcome := range []process.Outcome{process.Retrying, process.Waiting, process.Retrying, process.Retrying} {
		timeline = append(timeline, process.Entry{Step: "Order", Began: start.Add(time.Duration(i) * time.Minute), Outcome: outcome})
	}

	if got, want := a.givesUpAt(record, seriesOf(record, timeline)), start.Add(2*time.Minute+time.Hour); !got.Equal(want) {
		t.Errorf("a wait ends the retry window: got %s, want %s", got, want)
	}

	if got, want := a.givesUpAt(record, seriesOf(record, timeline[:2])), start.Add(24*time.Hour); !got.Equal(want) {
		t.Errorf("a step that waits without a limit of its own: got %s, want %s", got, want)
	}
}
