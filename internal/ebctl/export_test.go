package ebctl

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/environment-broker/environment-broker/internal/ebctl/output"
)

// exitWrongRows is the exit code of RunChecked for a command that commandsWithoutRows lists wrongly or lacks.
const exitWrongRows = 70

// RunChecked is like Run. It also compares the results that the command printed with commandsWithoutRows: if a result has no rows, the
// command must reject -o csv, and if a result has rows, the list must not contain the command. If not, RunChecked prints what to change
// and returns an exit code that no test expects.
func (a App) RunChecked(ctx context.Context, args []string) int {
	var withRows, withoutRows bool

	a.printed = func(text output.Text) {
		if output.HasRows(text) {
			withRows = true
		} else {
			withoutRows = true
		}
	}

	code := a.Run(ctx, args)

	switch path := pathOf(args); {
	case withoutRows && !a.rejectsCSV(ctx, args):
		fmt.Fprintf(a.Err, "%s printed a result without rows, but does not reject -o csv: add it to commandsWithoutRows\n", path)
	case withRows && slices.Contains(commandsWithoutRows(), path):
		fmt.Fprintf(a.Err, "%s printed a result with rows: remove it from commandsWithoutRows\n", path)
	default:
		return code
	}

	return exitWrongRows
}

// pathOf returns the path of the command that the arguments select.
func pathOf(args []string) string {
	command, _, err := newRootCommand(&session{globals: &globals{}}).Find(args)
	if err != nil {
		return err.Error()
	}

	return command.CommandPath()
}

// rejectsCSV runs the command again with -o csv, and reports whether it fails with a usage error about this format before it prints.
func (a App) rejectsCSV(ctx context.Context, args []string) bool {
	var problem strings.Builder

	printed := false
	a.Out, a.Err, a.printed = &strings.Builder{}, &problem, func(output.Text) { printed = true }

	return a.Run(ctx, append(slices.Clone(args), "-o", "csv")) == ExitUsage && strings.Contains(problem.String(), "csv") && !printed
}
