package explain

import (
	"cmp"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/environment-broker/environment-broker/internal/ebctl/output"
	"github.com/environment-broker/environment-broker/internal/operatorapi"
)

// WriteText implements output.Text.
func (e Explanation) WriteText(w io.Writer) error {
	var text strings.Builder

	fmt.Fprintf(&text, "%s\n\n", output.Line(e.Summary))
	e.fields().WriteText(&text) //nolint:errcheck // into memory

	if len(e.Advice) > 0 {
		text.WriteString("\nNext steps\n")

		for _, sentence := range e.Advice {
			fmt.Fprintf(&text, "  - %s\n", output.Line(sentence))
		}
	}

	if !e.TimelineRemovedAt.IsZero() {
		fmt.Fprintf(&text, "\nThe timeline was removed at %s, after APP_TIMELINE_RETENTION.\n", output.Time(e.TimelineRemovedAt))
	}

	if len(e.Timeline) > 0 {
		text.WriteString("\nTimeline\n")
		timeline(e.Timeline).WriteText(&text) //nolint:errcheck // into memory
	}

	return output.Plain(text.String()).WriteText(w)
}

func (e Explanation) fields() output.Fields {
	fields := output.Fields{{Name: "Operation", Value: e.OperationID + ", " + e.State}}

	add := func(name, format string, args ...any) {
		fields = append(fields, output.Field{Name: name, Value: fmt.Sprintf(format, args...)})
	}

	if e.Place != nil {
		add("Stage", "%s", e.Place.StageText())
		add("Step", "%s", e.Place.StepText())

		if !e.Place.Since.IsZero() && !e.Ended() {
			add("Since", "%s (%s)", output.Time(e.Place.Since), output.Duration(e.At.Sub(e.Place.Since)))
		}
	}

	if e.Wait != nil {
		// After a temporary failure, the reason for waiting repeats the problem.
		if e.Wait.Why != e.Problem.Message {
			add("Reason", "%s", e.Wait.Why)
		}

		add("Continues", "%s", e.Continues())
	}

	add("Problem", "%s", ProblemText(e.Problem))
	add("System", "%s", e.SystemText())
	add("Skipped", "%s", strings.Join(e.SkippedSteps, ", "))
	add("Accepted", "%s (%s ago)", output.Time(e.AcceptedAt), output.Duration(e.At.Sub(e.AcceptedAt)))
	add("Ordered by", "%s", e.OrderedBy)
	add("Ended", "%s", output.Time(e.EndedAt))

	return fields
}

// StageText returns the stage and its number: check_runtime (3 of 4).
func (p Place) StageText() string {
	if p.StageNumber == 0 {
		return p.Stage
	}

	return fmt.Sprintf("%s (%d of %d)", p.Stage, p.StageNumber, p.StageCount)
}

// StepText returns the step and its attempt: Check_Runtime, attempt 4.
func (p Place) StepText() string {
	if p.Attempt == 0 {
		return p.Step
	}

	return fmt.Sprintf("%s, attempt %d", p.Step, p.Attempt)
}

// Continues returns when a waiting operation continues, or nothing if it does not wait.
func (e Explanation) Continues() string {
	if e.Wait == nil || e.Wait.Until.IsZero() {
		return ""
	}

	text := "now"
	if remaining := e.Wait.Until.Sub(e.At); remaining > 0 {
		text = "in " + output.Duration(remaining)
	}

	if e.Wait.Event != "" {
		text += " or on an event"
	}

	if unavailable(e.System) {
		text += " or as soon as " + e.System.Name + " is available"
	}

	return text
}

// ProblemText returns a problem in one line: the message, then the component and the reason.
func ProblemText(problem operatorapi.Problem) string {
	var origin []string

	for _, word := range []string{problem.Component, problem.Reason} {
		if word != "" {
			origin = append(origin, word)
		}
	}

	if len(origin) == 0 {
		return problem.Message
	}

	return fmt.Sprintf("%s (%s)", problem.Message, strings.Join(origin, ": "))
}

// timeline returns a row for each entry. Consecutive attempts with the same outcome and message share a row.
func timeline(entries []operatorapi.TimelineEntry) output.Rows {
	rows := output.Rows{Head: []string{"BEGAN", "TOOK", "STAGE", "STEP", "ATTEMPT", "OUTCOME", "MESSAGE"}}

	for begin := 0; begin < len(entries); {
		end := begin + 1
		for end < len(entries) && same(entries[begin], entries[end]) {
			end++
		}

		rows.Rows = append(rows.Rows, row(entries[begin], entries[end-1]))
		begin = end
	}

	return rows
}

// same reports whether two timeline entries can share a row: they differ only in attempt and time.
func same(one, other operatorapi.TimelineEntry) bool {
	return one.Step != "" && one.Stage == other.Stage && one.Step == other.Step && one.Outcome == other.Outcome &&
		one.Message == other.Message && one.Attempt < other.Attempt
}

// row shows consecutive equal entries as one, from the start of the first to the end of the last.
func row(first, last operatorapi.TimelineEntry) []string {
	var took, attempt string

	if first.Step != "" {
		took = output.Duration(last.End.Sub(first.Began))
		attempt = strconv.Itoa(last.Attempt)
	}

	if from := cmp.Or(first.FirstAttempt, first.Attempt); from != last.Attempt {
		attempt = fmt.Sprintf("%d-%d", from, last.Attempt)
	}

	return []string{output.Time(first.Began), took, first.Stage, first.Step, attempt, first.Outcome, first.Message}
}

// The states of a circuit breaker, as the operator API names them.
const (
	breakerClosed = "closed"
	breakerOpen   = "open"
)

// unavailable reports whether the circuit breaker of the system rejects calls.
func unavailable(system operatorapi.System) bool {
	return system.Name != "" && system.State != breakerClosed
}

// SystemText returns the status of the system that delays the operation in one line, or nothing.
func (e Explanation) SystemText() string {
	system := e.System
	if system.Name == "" {
		return ""
	}

	text := system.Name + " is available"
	if system.Failures > 0 {
		text = fmt.Sprintf("%s: %d failed calls in a row since %s; last error: %s",
			system.Name, system.Failures, output.Time(system.FailingSince), system.LastFault)
	}

	switch {
	case !unavailable(system):
		return fmt.Sprintf("%s; %d of at most %d calls in flight", text, system.CallsInFlight, system.CallsLimit)
	case system.State == breakerOpen && !system.NextTry.IsZero():
		return fmt.Sprintf("%s; next call in %s", text, output.Duration(system.NextTry.Sub(e.At)))
	default:
		return text + "; the broker is trying again"
	}
}
