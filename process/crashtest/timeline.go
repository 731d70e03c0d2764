package crashtest

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/environment-broker/environment-broker/process"
)

// Gaps returns what is wrong with the timeline of an operation that has ended: it has to begin with the acceptance, count the attempts
// of each step without a hole, tell nothing twice, and end with the end.
func Gaps(state process.State, timeline []process.Entry) []string {
	var gaps []string

	note := func(format string, args ...any) { gaps = append(gaps, fmt.Sprintf(format, args...)) }

	if len(timeline) == 0 || timeline[0].Outcome != process.Accepted {
		note("it does not begin with the acceptance")

		return gaps
	}

	ends := map[process.State]process.Outcome{
		process.Succeeded: process.OperationSucceeded, process.Failed: process.OperationFailed, process.Canceled: process.OperationCanceled,
	}

	for i, entry := range timeline {
		last := i == len(timeline)-1

		switch {
		case entry.Outcome == process.Accepted && i > 0:
			note("line %d: accepted again", i)
		case last && entry.Outcome != ends[state]:
			note("an operation that is %s ends with %q", state, entry.Outcome)
		case !last && slices.Contains([]process.Outcome{ends[process.Succeeded], ends[process.Failed], ends[process.Canceled]}, entry.Outcome):
			note("line %d: it goes on after its end, %q", i, entry.Outcome)
		}
	}

	return append(gaps, attemptGaps(timeline)...)
}

// attemptGaps looks at the lines about attempts.
func attemptGaps(timeline []process.Entry) []string {
	var (
		gaps   []string
		before process.Entry
	)

	next := map[string]int{}
	told := map[string]bool{}
	left := map[string]bool{} // stages that another one has followed

	for i, entry := range timeline {
		if entry.Step == "" {
			continue
		}

		what := fmt.Sprintf("line %d, %s attempt %d %s", i, entry.Step, entry.Attempt, entry.Outcome)

		// Attempts that came to the same share a line.
		first := cmp.Or(entry.FirstAttempt, entry.Attempt)

		if want := max(next[entry.Step], 1); first != want && entry.Outcome != process.Skipped {
			gaps = append(gaps, fmt.Sprintf("%s: want attempt %d", what, want))
		}

		if entry.End.Before(entry.Began) || entry.Began.Before(before.End) {
			gaps = append(gaps, fmt.Sprintf("%s: from %s to %s, after one that ended at %s", what,
				at(entry.Began), at(entry.End), at(before.End)))
		}

		if key := fmt.Sprint(entry.Step, entry.Attempt, entry.Began, entry.Outcome); told[key] {
			gaps = append(gaps, what+": told twice")
		} else {
			told[key] = true
		}

		if before.Stage != "" && before.Stage != entry.Stage {
			left[before.Stage] = true
		}

		if left[entry.Stage] {
			gaps = append(gaps, what+": its stage was left before")
		}

		next[entry.Step] = following(entry)
		before = entry
	}

	return gaps
}

// following is the number of the attempt after this one. One that was handed back was none.
func following(entry process.Entry) int {
	switch entry.Outcome {
	case process.Waiting, process.Retrying:
		return entry.Attempt + 1
	case process.HandedBack:
		return entry.Attempt
	default:
		return 1
	}
}

// tell is the timeline as text.
func tell(timeline []process.Entry) string {
	lines := make([]string, 0, len(timeline))
	for _, entry := range timeline {
		lines = append(lines, fmt.Sprintf("  %s-%s %s %s %d %s %q",
			at(entry.Began), at(entry.End), entry.Stage, entry.Step, entry.Attempt, entry.Outcome, entry.Message))
	}

	return strings.Join(lines, "\n")
}
