package crashtest

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/environment-broker/environment-broker/process"
)

// Gaps returns the defects in the timeline of an operation that ended in the given state. A correct timeline starts with the
// acceptance, has consecutive attempts of each step without duplicates, and ends with the end of the operation.
func Gaps(state process.State, timeline []process.Entry) []string {
	var gaps []string

	note := func(format string, args ...any) { gaps = append(gaps, fmt.Sprintf(format, args...)) }

	if len(timeline) == 0 || timeline[0].Outcome != process.Accepted {
		note("the timeline does not start with the acceptance")

		return gaps
	}

	ends := map[process.State]process.Outcome{
		process.Succeeded: process.OperationSucceeded, process.Failed: process.OperationFailed, process.Canceled: process.OperationCanceled,
	}

	for i, entry := range timeline {
		last := i == len(timeline)-1

		switch {
		case entry.Outcome == process.Accepted && i > 0:
			note("entry %d: accepted again", i)
		case last && entry.Outcome != ends[state]:
			note("the state is %q, but the timeline ends with %q", state, entry.Outcome)
		case !last && slices.Contains([]process.Outcome{ends[process.Succeeded], ends[process.Failed], ends[process.Canceled]}, entry.Outcome):
			note("entry %d: %q follows the end of the operation", i, entry.Outcome)
		}
	}

	return append(gaps, attemptGaps(timeline)...)
}

// attemptGaps returns the defects in the entries of attempts: wrong numbers, overlapping times, duplicates, and attempts in a
// stage that the operation had already left.
func attemptGaps(timeline []process.Entry) []string {
	var (
		gaps   []string
		before process.Entry
	)

	next := map[string]int{}
	seen := map[string]bool{}
	left := map[string]bool{} // stages that the operation has left

	for i, entry := range timeline {
		if entry.Step == "" {
			continue
		}

		what := fmt.Sprintf("entry %d, %s attempt %d %s", i, entry.Step, entry.Attempt, entry.Outcome)

		// Consecutive equal attempts share an entry.
		first := cmp.Or(entry.FirstAttempt, entry.Attempt)

		if want := max(next[entry.Step], 1); first != want && entry.Outcome != process.Skipped {
			gaps = append(gaps, fmt.Sprintf("%s: want attempt %d", what, want))
		}

		if entry.End.Before(entry.Began) || entry.Began.Before(before.End) {
			gaps = append(gaps, fmt.Sprintf("%s: from %s to %s, after one that ended at %s", what,
				at(entry.Began), at(entry.End), at(before.End)))
		}

		if key := fmt.Sprint(entry.Step, entry.Attempt, entry.Began, entry.Outcome); seen[key] {
			gaps = append(gaps, what+": entered twice")
		} else {
			seen[key] = true
		}

		if before.Stage != "" && before.Stage != entry.Stage {
			left[before.Stage] = true
		}

		if left[entry.Stage] {
			gaps = append(gaps, what+": its stage was left earlier")
		}

		next[entry.Step] = following(entry)
		before = entry
	}

	return gaps
}

// following returns the number of the attempt after the entry. An attempt that was handed back does not count, so its number is
// used again. Once a step is done, its attempts are counted from 1 again if the stage restarts.
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

// text formats the timeline for test failures, one line for each entry.
func text(timeline []process.Entry) string {
	lines := make([]string, 0, len(timeline))
	for _, entry := range timeline {
		lines = append(lines, fmt.Sprintf("  %s-%s %s %s %d %s %q",
			at(entry.Began), at(entry.End), entry.Stage, entry.Step, entry.Attempt, entry.Outcome, entry.Message))
	}

	return strings.Join(lines, "\n")
}
