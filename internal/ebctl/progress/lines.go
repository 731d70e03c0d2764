package progress

import (
	"fmt"
	"io"

	"github.com/environment-broker/environment-broker/internal/ebctl/explain"
	"github.com/environment-broker/environment-broker/internal/ebctl/follow"
	"github.com/environment-broker/environment-broker/internal/ebctl/output"
)

// Lines prints a line whenever something has changed: for logs, pipes and terminals that cannot redraw.
type Lines struct {
	out  io.Writer
	last string
}

// NewLines returns a view that prints to the writer.
func NewLines(out io.Writer) *Lines { return &Lines{out: out} }

// Show prints the moment if it differs from the last one in more than time.
func (l *Lines) Show(moment follow.Moment) {
	told := explain.Of(moment.Operation, moment.Now)

	// What is compared holds no durations: they would make every moment another one.
	line := output.Line(status(told))
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

	fmt.Fprintf(l.out, "%6s  %s\n", output.Duration(told.Elapsed()), line)
}

// status is where the operation stands, in a line.
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
