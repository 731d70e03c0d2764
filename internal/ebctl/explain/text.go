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

// WriteText writes the explanation for people.
func (e Explanation) WriteText(w io.Writer) error {
	var text strings.Builder

	fmt.Fprintf(&text, "%s\n\n", output.Line(e.Summary))
	e.fields().WriteText(&text) //nolint:errcheck // into memory

	if len(e.Advice) > 0 {
		text.WriteString("\nWhat one can do\n")

		for _, sentence := range e.Advice {
			fmt.Fprintf(&text, "  - %s\n", output.Line(sentence))
		}
	}

	if e.TimelineRemovedAt != nil {
		fmt.Fprintf(&text, "\nThe timeline was removed %s: the broker keeps it for APP_TIMELINE_RETENTION.\n",
			output.TimeOf(e.TimelineRemovedAt))
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

		if e.Place.Since != nil && !e.Ended() {
			add("Since", "%s (%s)", output.Time(*e.Place.Since), output.Duration(e.At.Sub(*e.Place.Since)))
		}
	}

	if e.Wait != nil {
		// A step that failed for now gives its problem as what it waits for.
		if e.Problem == nil || e.Wait.Why != e.Problem.Message {
			add("Waits", "%s", e.Wait.Why)
		}

		add("Goes on", "%s", e.GoesOn())
	}

	add("Problem", "%s", ProblemText(e.Problem))
	add("System", "%s", e.SystemText())
	add("Skipped", "%s", strings.Join(e.SkippedSteps, ", "))
	add("Accepted", "%s (%s ago)", output.Time(e.AcceptedAt), output.Duration(e.At.Sub(e.AcceptedAt)))
	add("Ordered by", "%s", e.OrderedBy)
	add("Ended", "%s", output.TimeOf(e.EndedAt))

	return fields
}

// StageText is the stage and its place among the stages: check_runtime (3 of 4).
func (p Place) StageText() string {
	if p.StageNumber == 0 {
		return p.Stage
	}

	return fmt.Sprintf("%s (%d of %d)", p.Stage, p.StageNumber, p.StageCount)
}

// StepText is the step and its attempt: Check_Runtime, attempt 4.
func (p Place) StepText() string {
	if p.Attempt == 0 {
		return p.Step
	}

	return fmt.Sprintf("%s, attempt %d", p.Step, p.Attempt)
}

// GoesOn tells when an operation goes on that waits, or nothing.
func (e Explanation) GoesOn() string {
	if e.Wait == nil || e.Wait.Until == nil {
		return ""
	}

	text := "now"
	if remaining := e.Wait.Until.Sub(e.At); remaining > 0 {
		text = "in " + output.Duration(remaining)
	}

	if e.Wait.Event != "" {
		text += " or when told of a change"
	}

	if away(e.System) {
		text += " or as soon as " + e.System.Name + " answers again"
	}

	return text
}

// ProblemText is a problem in one line: the message, then where it comes from.
func ProblemText(problem *operatorapi.Problem) string {
	if problem == nil {
		return ""
	}

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

// timeline is a row for each entry. Attempts that ended alike one after the other share a row.
func timeline(entries []operatorapi.TimelineEntry) output.Rows {
	rows := output.Rows{Head: []string{"BEGAN", "TOOK", "STAGE", "STEP", "ATTEMPT", "OUTCOME", "MESSAGE"}}

	for begin := 0; begin < len(entries); {
		end := begin + 1
		for end < len(entries) && alike(entries[begin], entries[end]) {
			end++
		}

		rows.Rows = append(rows.Rows, row(entries[begin], entries[end-1]))
		begin = end
	}

	return rows
}

func alike(one, other operatorapi.TimelineEntry) bool {
	return one.Step != "" && one.Stage == other.Stage && one.Step == other.Step && one.Outcome == other.Outcome &&
		one.Message == other.Message && one.Attempt < other.Attempt
}

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
