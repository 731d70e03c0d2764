package follow

import (
	"fmt"
	"io"

	"github.com/environment-broker/environment-broker/internal/ebctl/explain"
	"github.com/environment-broker/environment-broker/internal/ebctl/output"
	"github.com/environment-broker/environment-broker/process"
)

// Lines is a View that appends a line for each change, for logs, pipes and terminals that cannot move the cursor.
type Lines struct {
	out io.Writer
	// last is the text of the last line, without durations.
	last string
}

// NewLines returns a view that prints to the writer.
func NewLines(out io.Writer) *Lines { return &Lines{out: out} }

// Show prints a line if the state, place or problem of the operation has changed since the last line. The line starts with the age of the
// operation.
func (l *Lines) Show(moment Moment) {
	explained := explain.Of(moment.Operation, moment.Now)

	// The texts are compared without durations: a countdown is not a change.
	line := output.Line(status(explained))
	if moment.Trouble != nil {
		line = output.Line(moment.Trouble.Error())
	}

	if line == l.last {
		return
	}

	l.last = line

	if moment.Trouble != nil {
		line = output.Line(trouble(moment))
	}

	fmt.Fprintf(l.out, "%6s  %s\n", output.Duration(explained.Elapsed()), line)
}

// status returns the state, the current stage and step, and the cause of a wait or failure.
func status(e explain.Explanation) string {
	text := e.State

	if e.Place != nil {
		text += ": " + e.Place.StageText()
		if step := step(*e.Place); step != "" {
			text += ", " + step
		}
	}

	if why := detail(e); why != "" {
		text += ": " + why
	}

	return text
}

// detail returns the problem of the operation, or else the reason of its wait. It returns an empty text while a step runs without an error.
func detail(e explain.Explanation) string {
	switch {
	case e.Problem.Message != "" && e.Ended():
		return explain.ProblemText(e.Problem)
	case e.Problem.Message != "":
		return "retrying: " + explain.ProblemText(e.Problem)
	case e.Wait == nil || e.Wait.Why == "":
		return ""
	case process.State(e.State) == process.Pending:
		return e.Wait.Why
	default:
		return "waiting: " + e.Wait.Why
	}
}

// step returns the step and its attempt. Many stages have one step with the name of the stage; step then returns the attempt alone.
func step(place explain.Place) string {
	switch {
	case place.Step != place.Stage:
		return place.StepText()
	case place.Attempt > 0:
		return fmt.Sprintf("attempt %d", place.Attempt)
	default:
		return ""
	}
}

// trouble returns the error of the last call and the time until the next one.
func trouble(moment Moment) string {
	return moment.Trouble.Error() + "; retrying in " + output.Duration(moment.Next.Sub(moment.Now))
}
