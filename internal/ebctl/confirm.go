package ebctl

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
)

// errDeclined reports that the user did not confirm an action. The command has changed nothing.
var errDeclined = errors.New("not confirmed; nothing has changed")

// addYes adds the --yes flag to a command that calls confirm.
func addYes(session *session, command *cobra.Command) *cobra.Command {
	command.Flags().BoolVarP(&session.yes, "yes", "y", false, "do not ask for confirmation; ebctl asks only if standard input is a terminal")

	return command
}

// asks reports whether commands ask the user for confirmation.
func (s *session) asks() bool { return !s.yes && s.Interactive() }

// confirm asks the user to confirm an action, and returns errDeclined unless the answer is y or yes. If --yes is set or standard
// input is not a terminal, it returns nil without asking, so that scripts do not hang. If the context ends before the user
// answers, it returns the context's error.
func (s *session) confirm(ctx context.Context, format string, args ...any) error {
	if !s.asks() {
		return nil
	}

	fmt.Fprintf(s.Err, format+" [y/N] ", args...)

	answers := make(chan string, 1)

	go func() { // reading from a terminal cannot be canceled
		answer, _ := bufio.NewReader(s.In).ReadString('\n') // a missing answer means no

		answers <- answer
	}()

	select {
	case <-ctx.Done():
		return ctx.Err()
	case answer := <-answers:
		if slices.Contains([]string{"y", "yes"}, strings.ToLower(strings.TrimSpace(answer))) {
			return nil
		}

		return errDeclined
	}
}
