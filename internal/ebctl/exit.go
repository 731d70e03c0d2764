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

// The exit codes. Scripts depend on them.
const (
	ExitOK = iota
	// ExitError is any error without a code of its own.
	ExitError
	// ExitUsage is an invalid command line, variable or configuration file.
	ExitUsage
	// ExitNotFound is a plan, an instance or an operation that does not exist.
	ExitNotFound
	// ExitConflict is a request that conflicts with the current state: an ID in use, or a concurrent operation.
	ExitConflict
	// ExitTimedOut is a wait that reached its limit. The operation continues.
	ExitTimedOut
	// ExitOperationFailed is a wait for an operation that failed or was canceled.
	ExitOperationFailed
)

// usageError is an invalid command line or configuration.
type usageError struct{ cause error }

func (e *usageError) Error() string { return e.cause.Error() }
func (e *usageError) Unwrap() error { return e.cause }

// usage returns a usageError, whose hint is the help of the command.
func usage(format string, args ...any) error { return &usageError{cause: fmt.Errorf(format, args...)} }

// notFoundError is a search by ebctl without a result.
type notFoundError struct{ text string }

func (e *notFoundError) Error() string { return e.text }

// end maps an error to the exit code and a hint for the user. {command} and {operation} in hints are replaced.
type end struct {
	applies func(error) bool
	code    int
	hint    string
}

// ends returns the mapping of errors. The first match wins; other errors end with ExitError and no hint.
func ends() []end {
	return []end{
		{is[*usageError], ExitUsage, "See '{command} --help'."},
		{
			is[*follow.TimedOutError], ExitTimedOut,
			"Continue to wait with 'ebctl operation get {operation} --wait', or see 'ebctl operation explain {operation}'.",
		},
		{
			is[*follow.EndedError], ExitOperationFailed,
			"See 'ebctl operation explain {operation}' for the cause and the next steps.",
		},
		{isInterrupted, ExitError, ""},
		{is[*notFoundError], ExitNotFound, "See 'ebctl instance list' and 'ebctl catalog'."},
		{
			answered(http.StatusNotFound, http.StatusGone), ExitNotFound,
			"See 'ebctl instance list' and 'ebctl operation list'.",
		},
		{
			isConcurrency, ExitConflict,
			"Another operation of the instance is in progress. See 'ebctl operation list --instance ID'.",
		},
		{
			isRefusedIntervention, ExitConflict,
			"See 'ebctl operation explain {operation}' for its state and the next steps.",
		},
		{answered(http.StatusConflict), ExitConflict, "See 'ebctl instance list'."},
		{
			answered(http.StatusUnauthorized), ExitError,
			"Set EBCTL_USERNAME and EBCTL_PASSWORD, or give --username and --password.",
		},
		{
			answered(http.StatusForbidden), ExitError,
			"The user lacks the role: osb for instances, viewer for lists, operator for interventions, admin for kubeconfigs.",
		},
		{
			is[*brokerclient.UnreachableError], ExitError,
			"Is the broker running? Set another address with --address or EBCTL_ADDRESS.",
		},
	}
}

// endOf returns the exit code and the hint for an error.
func endOf(err error) end {
	for _, end := range ends() {
		if end.applies(err) {
			return end
		}
	}

	return end{code: ExitError}
}

// hintFor returns the hint with the names of the command and the operation, or an empty text.
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

// isInterrupted matches Ctrl-C: the user knows why the command ended, so there is no hint.
func isInterrupted(err error) bool { return errors.Is(err, context.Canceled) }

// answered matches responses of the broker with one of the statuses.
func answered(wanted ...int) func(error) bool {
	return func(err error) bool {
		var answer *brokerclient.AnswerError

		return errors.As(err, &answer) && slices.Contains(wanted, answer.Status)
	}
}

// isRefusedIntervention matches an intervention that the state of the operation does not allow.
func isRefusedIntervention(err error) bool {
	return is[*interventionError](err) && answered(http.StatusConflict)(err)
}

// isConcurrency matches a request that was rejected because another operation of the instance runs.
func isConcurrency(err error) bool {
	var answer *brokerclient.AnswerError

	return errors.As(err, &answer) && answer.Code == brokerclient.CodeConcurrency
}
