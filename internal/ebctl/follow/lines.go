package follow

import (
	"fmt"
	"io"

	"github.com/environment-broker/environment-broker/internal/ebctl/output"
	"github.com/environment-broker/environment-broker/internal/operatorapi/explain"
	"github.com/environment-broker/environment-broker/process"
)

// Lines is a View that prints a line for each change. It is used for logs, pipes and terminals that cannot move the cursor.
type Lines struct {
	out io.Writer
	// last identifies the content of the last printed line, without the age of the operation and the countdown.
	last string
}

// NewLines returns a view that prints to out.
func NewLines(out io.Writer) *Lines { return &Lines{out: out} }

// percentStep divides the percentage into ranges of 10 points. Lines prints a line when the percentage enters another range.
const percentStep = 10

// Show prints a line if the state, place or problem of the operation has changed since the last line, if its percentage has entered
// another range, or if the error of the last call has changed. The line starts with the age of the operation.
func (l *Lines) Show(moment Moment) {
	explained := explain.Of(moment.Operation, moment.Now)

	// Do not compare durations, because a countdown alone is not a change.
	line := output.Line(status(explained))
	shown := line

	switch {
	case moment.PollError != nil:
		shown = output.Line(moment.PollError.Error())
	case explained.Percent > 0 && explained.UserText != "":
		shown = fmt.Sprint(explained.Percent/percentStep, explained.State, moment.Operation.Step, detail(explained))
	}

	if shown == l.last {
		return
	}

	l.last = shown

	if moment.PollError != nil {
		line = output.Line(pollError(moment))
	}

	fmt.Fprintf(l.out, "%6s  %s\n", output.Duration(explained.Elapsed()), line)
}

// status returns UserText while the operation is in progress. If there is no UserText, or if the operation has ended, status
// returns the state, the current stage and step, and the cause of a wait or a failure.
func status(e explain.Explanation) string {
	if e.UserText != "" && !e.Ended() {
		return e.UserText
	}

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

// detail returns the operation's problem or, if there is none, the reason why the operation waits. It is empty while a step runs
// without an error.
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

// step returns the name of the step and the number of its attempt. If the stage has the same name, it returns only the number.
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

// pollError returns the error of the last call and the time until the next call.
func pollError(moment Moment) string {
	return moment.PollError.Error() + "; retrying in " + output.Duration(moment.Next.Sub(moment.Now))
}
