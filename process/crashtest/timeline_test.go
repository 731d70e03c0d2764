package crashtest_test

import (
	"strings"
	"testing"
	"time"

	"github.com/environment-broker/environment-broker/process"
	"github.com/environment-broker/environment-broker/process/crashtest"
)

func attempt(stage, step string, number, second int, outcome process.Outcome) process.Entry {
	began := time.Unix(int64(second), 0)

	return process.Entry{Stage: stage, Step: step, Attempt: number, Outcome: outcome, Began: began, End: began.Add(time.Second)}
}

func whole(outcome process.Outcome) process.Entry { return process.Entry{Outcome: outcome} }

// compacted returns a copy of the entry that covers all attempts from number first to the entry's.
func compacted(entry process.Entry, first int) process.Entry {
	entry.FirstAttempt = first

	return entry
}

func TestGaps(t *testing.T) {
	accepted, succeeded := whole(process.Accepted), whole(process.OperationSucceeded)

	cases := map[string]struct {
		reason   string
		timeline []process.Entry
		want     string // part of the only expected gap; empty if no gap is expected
	}{
		"sound": {
			reason: "attempts are counted until the step is done",
			timeline: []process.Entry{
				accepted, attempt("s", "A", 1, 1, process.Retrying), attempt("s", "A", 2, 2, process.HandedBack), whole(process.TakenOver),
				attempt("s", "A", 2, 3, process.Done), attempt("t", "B", 1, 4, process.Done), succeeded,
			},
		},
		"stage restarts": {
			reason: "a done step runs again when its stage restarts",
			timeline: []process.Entry{
				accepted, attempt("s", "A", 1, 1, process.Done), attempt("s", "B", 1, 2, process.Waiting),
				attempt("s", "A", 1, 3, process.Done), attempt("s", "B", 2, 4, process.Done), succeeded,
			},
		},
		"compacted": {
			reason: "equal attempts share an entry",
			timeline: []process.Entry{
				accepted, compacted(attempt("s", "A", 7, 1, process.Waiting), 1), attempt("s", "A", 8, 2, process.Done), succeeded,
			},
		},
		"compacted with a gap": {
			"a compacted entry continues the numbers of the earlier attempts",
			[]process.Entry{accepted, compacted(attempt("s", "A", 7, 1, process.Waiting), 2), attempt("s", "A", 8, 2, process.Done), succeeded},
			"want attempt 1",
		},
		"empty":          {"the first entry is the acceptance", nil, "does not start"},
		"no end":         {"the end is recorded", []process.Entry{accepted, attempt("s", "A", 1, 1, process.Done)}, "ends with"},
		"another end":    {"the last entry matches the state", []process.Entry{accepted, whole(process.OperationFailed)}, "ends with"},
		"after the end":  {"nothing happens after the end", []process.Entry{accepted, succeeded, whole(process.TakenOver), succeeded}, "follows the end"},
		"accepted twice": {"an operation is accepted once", []process.Entry{accepted, accepted, succeeded}, "accepted again"},
		"attempt lost": {
			"no attempt is missing",
			[]process.Entry{accepted, attempt("s", "A", 1, 1, process.Retrying), attempt("s", "A", 3, 2, process.Done), succeeded},
			"want attempt 2",
		},
		"entered twice": {
			"each attempt has one entry",
			[]process.Entry{
				accepted, {Stage: "s", Step: "A", Attempt: 1, Outcome: process.Done}, {Stage: "s", Step: "A", Attempt: 1, Outcome: process.Done}, succeeded,
			},
			"entered twice",
		},
		"at the same time": {
			"no two attempts run at the same time",
			[]process.Entry{accepted, attempt("s", "A", 1, 5, process.Done), attempt("s", "B", 1, 5, process.Done), succeeded},
			"after one that ended",
		},
		"finished stage": {
			"a stage that was left is not entered again",
			[]process.Entry{
				accepted, attempt("s", "A", 1, 1, process.Done), attempt("t", "B", 1, 2, process.Waiting), attempt("s", "A", 1, 3, process.Done), succeeded,
			},
			"was left earlier",
		},
	}

	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			gaps := crashtest.Gaps(process.Succeeded, c.timeline)

			if c.want == "" && len(gaps) > 0 || c.want != "" && (len(gaps) != 1 || !strings.Contains(gaps[0], c.want)) {
				t.Errorf("%s: gaps %q, want one with %q", c.reason, gaps, c.want)
			}
		})
	}
}
