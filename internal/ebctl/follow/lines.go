package follow

import (
	"fmt"
	"io"

	"github.com/environment-broker/environment-broker/internal/ebctl/explain"
	"github.com/environment-broker/environment-broker/internal/ebctl/output"
	"github.com/environment-broker/environment-broker/process"
)

// Lines is a View that prints a line for each change, for logs, pipes and terminals that cannot redraw.
type Lines struct {
	out  io.Writer
	last string
}

// NewLines returns a view that prints to the writer.
func NewLines(out io.Writer) *Lines { return &Lines{out: out} }

// Show prints the moment unless only time has passed.
func (l *Lines) Show(moment Moment) {
	explained := explain.Of(moment.Operation, moment.Now)

	// The compared text has no durations, which change with every call.
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

// status returns the state, the current stage and step, and the cause of a wait or failure, in one line.
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

// detail returns the problem or the reason for waiting, or nothing while the operation runs.
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

// step returns the step and its attempt. It leaves out the name of a step that is the stage's name.
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

// trouble returns the error of the last call and the time of the next one.
func trouble(moment Moment) string {
	return moment.Trouble.Error() + "; retrying in " + output.Duration(moment.Next.Sub(moment.Now))
}
