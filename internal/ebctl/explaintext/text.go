// Package explaintext prints explanations of operations for users of ebctl.
package explaintext

import (
	"cmp"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/environment-broker/environment-broker/internal/ebctl/output"
	"github.com/environment-broker/environment-broker/internal/failure"
	"github.com/environment-broker/environment-broker/internal/operatorapi"
	"github.com/environment-broker/environment-broker/internal/operatorapi/explain"
)

// Text prints an explanation as text. In JSON, it has the form of the explanation.
type Text struct{ explain.Explanation }

// WriteText implements output.Text. It prints the summary, all fields with a value, the advice, and the timeline as a table.
func (e Text) WriteText(w io.Writer) error {
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

// fields returns the lines below the summary, without fields that have no value.
func (e Text) fields() output.Fields {
	fields := output.Fields{{Name: "Operation", Value: e.OperationID + ", " + e.State}}

	add := func(name, format string, args ...any) {
		fields = append(fields, output.Field{Name: name, Value: fmt.Sprintf(format, args...)})
	}

	add("Shown", "%s", e.UserText)

	if progress := e.Progress(); progress != "" {
		add("Progress", "%s, based on past operations", progress)
	}

	if e.Place != nil {
		add("Stage", "%s", e.Place.StageText())
		add("Step", "%s", e.Place.StepText())
		add("Purpose", "%s", e.Place.Does)
		add("Replica", "%s", e.Place.Replica)

		if !e.Place.Since.IsZero() && !e.Ended() {
			add("Since", "%s (%s)", output.Time(e.Place.Since), output.Duration(e.At.Sub(e.Place.Since)))
		}
	}

	if e.Wait != nil {
		// After an error, the reason for the wait is the problem itself, which another line already shows.
		if e.Wait.Why != failure.WithDetail(e.Problem.Message, e.Problem.Detail) {
			add("Reason", "%s", e.Wait.Why)
		}

		add("Continues", "%s", e.Continues())
		add("Gives up", "%s", e.GivesUp())
	}

	add("Problem", "%s", explain.ProblemText(e.Problem))
	add("System", "%s", e.SystemText())
	add("Skipped", "%s", strings.Join(e.SkippedSteps, ", "))
	add("Accepted", "%s (%s ago)", output.Time(e.AcceptedAt), output.Duration(e.At.Sub(e.AcceptedAt)))
	add("Ordered by", "%s", e.OrderedBy)
	add("Trace", "%s", e.TraceID)
	add("Ended", "%s", output.Time(e.EndedAt))

	return fields
}

// timeline returns the entries as a table. It merges consecutive attempts that have the same outcome and message into one row.
// The broker already merges most repeated waits, except the first attempt and entries that earlier versions wrote.
func timeline(entries []operatorapi.TimelineEntry) output.Rows {
	rows := output.Rows{Head: []string{"BEGAN", "TOOK", "STAGE", "STEP", "ATTEMPT", "OUTCOME", "MESSAGE"}}

	for start := 0; start < len(entries); {
		end := start + 1
		for end < len(entries) && mergeable(entries[start], entries[end]) {
			end++
		}

		rows.Rows = append(rows.Rows, row(entries[start], entries[end-1]))
		start = end
	}

	return rows
}

// mergeable reports whether two entries can share a row: they belong to the same step and differ only in attempt and time.
// Entries without a step describe the operation itself, for example its acceptance, and are never merged.
func mergeable(one, other operatorapi.TimelineEntry) bool {
	return one.Step != "" && one.Stage == other.Stage && one.Step == other.Step && one.Outcome == other.Outcome &&
		one.Message == other.Message && one.Attempt < other.Attempt
}

// row returns a table row for one entry, or for several merged entries, from the start of the first to the end of the last.
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
