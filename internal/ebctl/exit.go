package ebctl

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/environment-broker/environment-broker/internal/ebctl/brokerclient"
	"github.com/environment-broker/environment-broker/internal/ebctl/follow"
)

// Exit codes. Scripts depend on their values.
const (
	ExitOK = iota
	// ExitError reports an error without a specific exit code.
	ExitError
	// ExitUsage reports an invalid command line, variable or configuration file.
	ExitUsage
	// ExitNotFound reports that a plan, an instance, a binding or an operation does not exist.
	ExitNotFound
	// ExitConflict reports a conflict with the current state: an ID in use, or a concurrent operation.
	ExitConflict
	// ExitTimedOut reports that the wait timed out. The operation continues.
	ExitTimedOut
	// ExitOperationFailed reports that the operation that the command waited for has failed or was canceled.
	ExitOperationFailed
	// ExitAuditBroken reports that the audit log was changed.
	ExitAuditBroken
	// ExitDifferent reports that a comparison has found differences.
	ExitDifferent
)

// usageError reports an invalid command line, variable or configuration file. Its hint refers to the help of the command.
type usageError struct{ cause error }

func (e *usageError) Error() string { return e.cause.Error() }
func (e *usageError) Unwrap() error { return e.cause }

// usage returns a usageError with the formatted text.
func usage(format string, args ...any) error { return &usageError{cause: fmt.Errorf(format, args...)} }

// notFoundError reports that ebctl found no match in a list. The broker's own 404 is an AnswerError.
type notFoundError struct {
	text string
	// suggestion continues the text with a similar name, or is empty.
	suggestion string
}

func (e *notFoundError) Error() string { return e.text + e.suggestion }

// exit assigns an exit code and a hint for the user to a group of errors. hintFor replaces the placeholders {command} and
// {operation} in the hint.
type exit struct {
	applies func(error) bool
	code    int
	hint    string
}

// exits returns the exit codes and hints of all errors. The first match wins, so specific errors come before the HTTP statuses
// that they wrap.
func exits() []exit {
	return []exit{
		{is[*usageError], ExitUsage, "See '{command} --help'."},
		{
			is[*follow.TimedOutError], ExitTimedOut,
			"Continue to wait with 'ebctl operation get {operation} --wait', or see 'ebctl operation explain {operation}'.",
		},
		{
			is[*follow.EndedError], ExitOperationFailed,
			"See 'ebctl operation explain {operation}' for the cause and the next steps.",
		},
		{is[*orchestrationTimeoutError], ExitTimedOut, "The orchestration continues. See 'ebctl orchestration explain ID'."},
		{is[*orchestrationEndedError], ExitOperationFailed, "See 'ebctl orchestration explain ID' for the cause and the next steps."},
		{isInterrupted, ExitError, ""},
		{is[*bundleTimeoutError], ExitTimedOut, "The installation continues. See 'ebctl bundle get NAME' for its progress."},
		{is[*bundleFailedError], ExitOperationFailed, "See docs/operator/bundles.md for the conditions and what to do."},
		{
			apierrors.IsNotFound, ExitNotFound,
			"See 'ebctl bundle list'. If that fails too, the cluster lacks the CustomResourceDefinitions: see docs/operator/bundles.md.",
		},
		{contentStatus(http.StatusNotFound), ExitNotFound, "See 'ebctl bundle list -o json' for the names and phases of Bundles."},
		{contentStatus(http.StatusConflict), ExitConflict, "Uploads need a Bundle with the source upload. The content of an unpacked Bundle cannot change: create another one."},
		{
			contentStatus(http.StatusUnauthorized, http.StatusForbidden), ExitError,
			"The token needs the ClusterRole bundle-reader for content, and bundle-uploader for uploads: see docs/operator/bundles.md.",
		},
		{apierrors.IsAlreadyExists, ExitConflict, "See 'ebctl bundle list', or use another name."},
		{apierrors.IsUnauthorized, ExitError, "The API server rejects the credentials of the kubeconfig. Set another one with --kubeconfig or KUBECONFIG."},
		{apierrors.IsForbidden, ExitError, "The user of the kubeconfig lacks a role for bundles and bundledeployments of core.rukpak.io."},
		{is[*differentError], ExitDifferent, ""},
		{is[*brokenError], ExitAuditBroken, "See docs/operator/audit.md for what to do."},
		{is[*notFoundError], ExitNotFound, "See 'ebctl instance list', 'ebctl operation list' and 'ebctl catalog'."},
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
			"Set EBCTL_USERNAME and EBCTL_PASSWORD, or use --username and --password. The credentials in the configuration file apply only to the address stored with them.",
		},
		{
			answered(http.StatusForbidden), ExitError,
			"The user lacks a role. APP_AUTH_BASIC_USERS or the token issuer grants roles: see docs/operator/access.md. To act as another user, set --username or EBCTL_USERNAME.",
		},
		{
			is[*brokerclient.UnreachableError], ExitError,
			"Is the broker running? Set a different address with --address or EBCTL_ADDRESS.",
		},
	}
}

// exitFor returns the exit code and the hint for an error. If no entry matches, the code is ExitError and there is no hint.
func exitFor(err error) exit {
	for _, exit := range exits() {
		if exit.applies(err) {
			return exit
		}
	}

	return exit{code: ExitError}
}

// hintFor returns the hint with its placeholders replaced by the path of the command and the ID of the operation in the error. It
// returns an empty string if there is no hint.
func (e exit) hintFor(command *cobra.Command, err error) string {
	if command.HasParent() && command.Parent().Name() == accountsGroup && (e.code == ExitNotFound || e.code == ExitConflict) {
		return "See 'ebctl accounts list', and docs/operator/account-pool.md."
	}

	var operation string

	if timedOut, ok := errors.AsType[*follow.TimedOutError](err); ok {
		operation = timedOut.OperationID
	}

	if ended, ok := errors.AsType[*follow.EndedError](err); ok {
		operation = ended.Operation.ID
	}

	if refused, ok := errors.AsType[*interventionError](err); ok {
		operation = refused.operationID
	}

	return strings.NewReplacer("{command}", command.CommandPath(), "{operation}", operation).Replace(e.hint)
}

// is reports whether the error chain of err contains an error of type E.
func is[E error](err error) bool {
	_, found := errors.AsType[E](err)

	return found
}

// isInterrupted matches a canceled command (Ctrl-C). The user knows why it ended, so it needs no hint.
func isInterrupted(err error) bool { return errors.Is(err, context.Canceled) }

// answered returns a function that matches error responses with one of the statuses.
func answered(statuses ...int) func(error) bool {
	return func(err error) bool {
		answer, ok := errors.AsType[*brokerclient.AnswerError](err)

		return ok && slices.Contains(statuses, answer.Status)
	}
}

// isRefusedIntervention matches an intervention that the broker rejected because of the state of the operation.
func isRefusedIntervention(err error) bool {
	return is[*interventionError](err) && answered(http.StatusConflict)(err)
}

// isConcurrency matches a request that the broker rejected because another operation of the instance is in progress.
func isConcurrency(err error) bool {
	answer, ok := errors.AsType[*brokerclient.AnswerError](err)

	return ok && answer.Code == brokerclient.CodeConcurrency
}
