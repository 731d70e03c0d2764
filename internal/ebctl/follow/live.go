package follow

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/environment-broker/environment-broker/internal/ebctl/output"
	"github.com/environment-broker/environment-broker/internal/operatorapi/explain"
	"github.com/environment-broker/environment-broker/process"
)

// Size is the size of a terminal in columns and rows. If a value is 0, the size is unknown and Live does not cut its output.
type Size struct{ Width, Height int }

// Live is a View that redraws the operation in place on a terminal: a header, a bar if the percentage is known, and the operation's
// UserText. Without a UserText, it shows one line per stage and the details of the current stage instead.
type Live struct {
	out  io.Writer
	size func() Size
	// drawn is the number of lines of the last drawing. They are above the cursor.
	drawn int
}

// NewLive returns a view that draws on the terminal to which out writes. The view calls size before each drawing, because users
// resize terminals.
func NewLive(out io.Writer, size func() Size) *Live { return &Live{out: out, size: size} }

// Control sequences that all terminals since the VT100 support. They move the cursor up, clear the rest of the line, and clear
// the rest of the screen.
const (
	upLines   = "\x1b[%dA"
	clearLine = "\x1b[K"
	clearRest = "\x1b[J"
)

// Show replaces the last drawing.
func (l *Live) Show(moment Moment) { l.Draw(frame(moment)) }

// Draw replaces the last drawing with the lines. It cuts each line to the width of the terminal and drops the first lines of a
// drawing that is taller than the terminal, because the cursor cannot move back to lines that have wrapped or scrolled off the
// screen.
func (l *Live) Draw(lines []string) {
	size := l.size()

	if size.Height > 1 && len(lines) >= size.Height {
		lines = lines[len(lines)-size.Height+1:]
	}

	var drawing strings.Builder

	if l.drawn > 0 {
		fmt.Fprintf(&drawing, upLines, l.drawn)
	}

	for _, line := range lines {
		drawing.WriteString("\r" + output.Cut(line, size.Width) + clearLine + "\n")
	}

	drawing.WriteString(clearRest)

	l.drawn = len(lines)

	io.WriteString(l.out, drawing.String()) //nolint:errcheck // the wait does not depend on the view
}

// frame returns the lines of a drawing: the header, the UserText or the stages, and the error of the last call, if it failed.
// Details that belong to no stage, for example while the operation is pending, are below the stages.
func frame(moment Moment) []string {
	explained := explain.Of(moment.Operation, moment.Now)
	lines := []string{"waiting for the first response"}

	if moment.Operation.ID != "" {
		lines = []string{output.Line(fmt.Sprintf("%s of %s %s: %s, %s",
			explained.Kind, moment.Noun, explained.InstanceID, explained.State, output.Duration(explained.Elapsed())) + left(explained))}
	}

	if explained.Percent > 0 {
		lines = append(lines, "  "+output.Bar(explained.Percent))
	}

	if explained.UserText != "" {
		return appendPollError(appendText(lines, "  ", explained.UserText), moment)
	}

	for _, stage := range moment.Operation.Stages {
		lines = append(lines, stageLines(explained, stage, mark(moment, stage))...)
	}

	if explained.Place == nil || explained.Place.StageNumber == 0 {
		lines = appendText(lines, "  ", detail(explained))
	}

	return appendPollError(lines, moment)
}

// appendPollError appends the error of the last call, if it failed.
func appendPollError(lines []string, moment Moment) []string {
	if moment.PollError == nil {
		return lines
	}

	return appendText(lines, "  ! ", pollError(moment))
}

// left returns the percentage and the expected time until the operation ends. It returns an empty string if they are unknown, or if
// UserText contains them.
func left(explained explain.Explanation) string {
	if progress := explained.Progress(); progress != "" && explained.UserText == "" {
		return ", " + progress
	}

	return ""
}

// stageLines returns the line of a stage. For the current stage, the line also contains the step and its age, and a second line
// shows the wait or the problem.
func stageLines(explained explain.Explanation, stage, mark string) []string {
	line := fmt.Sprintf("  %s %s", mark, output.Line(stage))
	if explained.Place == nil || explained.Place.Stage != stage {
		return []string{line}
	}

	if step := step(*explained.Place); step != "" {
		line += "  " + output.Line(step)
	}

	if !explained.Place.Since.IsZero() && !explained.Ended() {
		line += ", " + output.Duration(explained.At.Sub(explained.Place.Since))
	}

	why := detail(explained)
	if next := explained.Continues(); next != "" && why != "" {
		why += "; continues " + next
	}

	return appendText([]string{line}, "      ", why)
}

// mark returns the symbol of a stage: ✓ finished, ✗ failed or canceled, ▸ current, · not started.
func mark(moment Moment, stage string) string {
	state := process.State(moment.Operation.State)

	switch {
	case state == process.Succeeded, slices.Contains(moment.Operation.FinishedStages, stage):
		return "✓"
	case stage != moment.Operation.Stage:
		return "·"
	case state.Terminal():
		return "✗"
	default:
		return "▸"
	}
}

// appendText appends an indented line with the text, unless the text is empty.
func appendText(lines []string, indent, text string) []string {
	if text == "" {
		return lines
	}

	return append(lines, indent+output.Line(text))
}
