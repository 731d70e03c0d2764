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

// checkReason returns a usage error if an operator has not given a reason for a change.
func checkReason(reason string) error {
	if strings.TrimSpace(reason) == "" {
		return usage("--reason is missing: state the reason for other operators")
	}

	return nil
}

// addReason adds the --reason flag. A command without a reason fails before it sends a request, unless *dryRun is set. dryRun is nil if
// the command has no dry runs. records names where the broker stores the reason.
func addReason(command *cobra.Command, reason *string, dryRun *bool, records string) {
	help := "the reason, for " + records + "; required"
	if dryRun != nil {
		help += " without --dry-run"
	}

	command.Flags().StringVar(reason, "reason", "", help)

	command.PreRunE = func(*cobra.Command, []string) error {
		if dryRun != nil && *dryRun {
			return nil
		}

		return checkReason(*reason)
	}
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
