package ebctl

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/environment-broker/environment-broker/internal/ebctl/follow"
	"github.com/environment-broker/environment-broker/internal/ebctl/progress"
)

// App is the tool with everything that it takes from outside.
type App struct {
	In       io.Reader
	Out, Err io.Writer
	// Environment returns the value of a variable, or nothing.
	Environment func(name string) string
	// Terminal returns the size of the terminal behind Err, or false when there is none.
	Terminal func() (progress.Size, bool)
	Clock    follow.Clock
	// NewID makes the ids of new instances and of requests.
	NewID func() string
	// PollInterval is how often a wait asks the broker.
	PollInterval time.Duration
	Version      string
}

// Run carries out the command line and returns the exit code of the process.
func (a App) Run(ctx context.Context, args []string) int {
	root := newRootCommand(&session{App: a})
	root.SetArgs(args)
	root.SetIn(a.In)
	root.SetOut(a.Out)
	root.SetErr(a.Err)

	command, err := root.ExecuteContextC(ctx)
	if err == nil {
		return ExitOK
	}

	end := endOf(err)

	fmt.Fprintf(a.Err, "ebctl: %v\n", err)

	if hint := end.hintFor(command, err); hint != "" {
		fmt.Fprintf(a.Err, "  %s\n", hint)
	}

	return end.code
}
