package progress

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/environment-broker/environment-broker/internal/ebctl/explain"
	"github.com/environment-broker/environment-broker/internal/ebctl/follow"
	"github.com/environment-broker/environment-broker/internal/ebctl/output"
	"github.com/environment-broker/environment-broker/process"
)

// Size is that of a terminal, in characters.
type Size struct{ Width, Height int }

// Live draws the operation on a terminal, each time over what it drew before.
type Live struct {
	out   io.Writer
	size  func() Size
	drawn int
}

// NewLive returns a view that draws on the terminal behind the writer. Its size is asked for with each drawing.
func NewLive(out io.Writer, size func() Size) *Live { return &Live{out: out, size: size} }

// The control sequences of every terminal since the VT100.
const (
	upLines   = "\x1b[%dA"
	clearLine = "\x1b[K"
	clearRest = "\x1b[J"
)

// Show draws the moment. A line never wraps and the drawing is never higher than the terminal, or the next one could not cover it.
func (l *Live) Show(moment follow.Moment) {
	size := l.size()
	lines := frame(moment)

	if size.Height > 1 && len(lines) >= size.Height {
		lines = lines[len(lines)-size.Height+1:]
	}

	var drawing strings.Builder

	if l.drawn > 0 {
		fmt.Fprintf(&drawing, upLines, l.drawn)
	}

	for _, line := range lines {
		drawing.WriteString("\r" + cut(line, size.Width) + clearLine + "\n")
	}

	drawing.WriteString(clearRest)

	l.drawn = len(lines)

	io.WriteString(l.out, drawing.String()) //nolint:errcheck // a view that cannot be seen harms nothing
}

// frame is the drawing: a head, a line for each stage, what happens in the present one, and what is wrong with the broker.
func frame(moment follow.Moment) []string {
	told := explain.Of(moment.Operation, moment.Now)
	lines := []string{"asking the broker"}

	if moment.Operation.ID != "" {
		lines = []string{output.Line(fmt.Sprintf("%s of instance %s: %s, %s",
			told.Kind, told.InstanceID, told.State, output.Duration(told.Elapsed())))}
	}

	for _, stage := range moment.Operation.Stages {
		lines = append(lines, stageLines(told, stage, mark(moment, stage))...)
	}

	if told.Place == nil || told.Place.StageNumber == 0 {
		lines = appendText(lines, "  ", detail(told))
	}

	if moment.Trouble != nil {
		lines = appendText(lines, "  ! ", trouble(moment))
	}

	return lines
}

// stageLines is the stage's line and, for the one in which the operation stands, what happens there.
func stageLines(told explain.Explanation, stage, mark string) []string {
	line := fmt.Sprintf("  %s %s", mark, output.Line(stage))
	if told.Place == nil || told.Place.Stage != stage {
		return []string{line}
	}

	if step := step(*told.Place); step != "" {
		line += "  " + output.Line(step)
	}

	if told.Place.Since != nil && !told.Ended() {
		line += ", " + output.Duration(told.At.Sub(*told.Place.Since))
	}

	why := detail(told)
	if next := told.GoesOn(); next != "" && why != "" {
		why += "; goes on " + next
	}

	return appendText([]string{line}, "      ", why)
}

// mark tells what became of the stage.
func mark(moment follow.Moment, stage string) string {
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

// appendText adds a line unless there is nothing to say.
func appendText(lines []string, indent, text string) []string {
	if text == "" {
		return lines
	}

	return append(lines, indent+output.Line(text))
}

// cut shortens a line to the width, which is taken as unlimited when it is not known.
func cut(line string, width int) string {
	letters := []rune(line)
	if width <= 0 || len(letters) <= width {
		return line
	}

	return string(letters[:width-1]) + "…"
}
