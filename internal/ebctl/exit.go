package ebctl

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/environment-broker/environment-broker/internal/ebctl/brokerclient"
	"github.com/environment-broker/environment-broker/internal/ebctl/follow"
)

// The exit codes. Scripts rely on them.
const (
	ExitOK = iota
	// ExitError is any error that has no code of its own.
	ExitError
	// ExitUsage is a command line, a variable or a configuration file that makes no sense.
	ExitUsage
	// ExitNotFound is a plan, an instance or an operation that does not exist.
	ExitNotFound
	// ExitConflict is a request that does not fit the present state: an id in use, another operation that runs.
	ExitConflict
	// ExitTimedOut is a wait that took too long. The operation goes on.
	ExitTimedOut
	// ExitOperationFailed is an operation that was waited for and failed or was canceled.
	ExitOperationFailed
)

// usageError is a command line that makes no sense.
type usageError struct{ cause error }

func (e *usageError) Error() string { return e.cause.Error() }
func (e *usageError) Unwrap() error { return e.cause }

func usage(format string, args ...any) error { return &usageError{cause: fmt.Errorf(format, args...)} }

// notFoundError is something that the broker was not even asked for by its id, because a search did not find it.
type notFoundError struct{ text string }

func (e *notFoundError) Error() string { return e.text }

// end is how the tool ends with an error: the exit code, and what the user can do. In a hint {command} and {operation} stand for
// the command and for the operation that was waited for.
type end struct {
	applies func(error) bool
	code    int
	hint    string
}

// ends are tried in order. An error that none applies to ends with ExitError and no hint.
func ends() []end {
	return []end{
		{is[*usageError], ExitUsage, "'{command} --help' tells how it is used."},
		{
			is[*follow.TimedOutError], ExitTimedOut,
			"Wait on with 'ebctl operation get {operation} --wait', or see 'ebctl operation explain {operation}'.",
		},
		{
			is[*follow.EndedError], ExitOperationFailed,
			"'ebctl operation explain {operation}' tells what happened and what one can do.",
		},
		{isStopped, ExitError, ""},
		{is[*notFoundError], ExitNotFound, "'ebctl instance list' and 'ebctl catalog' show what there is."},
		{
			answered(http.StatusNotFound, http.StatusGone), ExitNotFound,
			"'ebctl instance list' and 'ebctl operation list' show what there is.",
		},
		{
			isConcurrency, ExitConflict,
			"Another operation of the instance runs: 'ebctl operation list --instance ID' shows it.",
		},
		{
			isRefusedIntervention, ExitConflict,
			"'ebctl operation explain {operation}' tells how it stands and what one can do.",
		},
		{answered(http.StatusConflict), ExitConflict, "'ebctl instance list' shows what there is."},
		{
			answered(http.StatusUnauthorized), ExitError,
			"Set EBCTL_USERNAME and EBCTL_PASSWORD, or give --username and --password.",
		},
		{
			answered(http.StatusForbidden), ExitError,
			"The user lacks the role: osb for instances, viewer to look around, operator to intervene, admin for kubeconfigs.",
		},
		{
			is[*brokerclient.UnreachableError], ExitError,
			"Is the broker running? Another address is given with --address or EBCTL_ADDRESS.",
		},
	}
}

func endOf(err error) end {
	for _, end := range ends() {
		if end.applies(err) {
			return end
		}
	}

	return end{code: ExitError}
}

func (e end) hintFor(command *cobra.Command, err error) string {
	var operation string

	if timedOut := (*follow.TimedOutError)(nil); errors.As(err, &timedOut) {
		operation = timedOut.OperationID
	}

	if ended := (*follow.EndedError)(nil); errors.As(err, &ended) {
		operation = ended.Operation.ID
	}

	if refused := (*interventionError)(nil); errors.As(err, &refused) {
		operation = refused.operationID
	}

	return strings.NewReplacer("{command}", command.CommandPath(), "{operation}", operation).Replace(e.hint)
}

func is[E error](err error) bool {
	var target E

	return errors.As(err, &target)
}

func isStopped(err error) bool { return errors.Is(err, context.Canceled) }

func answered(wanted ...int) func(error) bool {
	return func(err error) bool {
		var answer *brokerclient.AnswerError

		return errors.As(err, &answer) && slices.Contains(wanted, answer.Status)
	}
}

func isRefusedIntervention(err error) bool {
	return is[*interventionError](err) && answered(http.StatusConflict)(err)
}

func isConcurrency(err error) bool {
	var answer *brokerclient.AnswerError

	return errors.As(err, &answer) && answer.Code == brokerclient.CodeConcurrency
}
