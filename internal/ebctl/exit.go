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
	"github.com/environment-broker/environment-broker/internal/ebctl/output"
)

// Exit codes. Scripts depend on their values.
const (
	ExitOK = iota
	// ExitError reports an error that has no exit code of its own.
	ExitError
	// ExitUsage reports an invalid command line, variable or configuration file.
	ExitUsage
	// ExitNotFound reports that an object, such as an instance or a plan, does not exist.
	ExitNotFound
	// ExitConflict reports a conflict with the current state, such as an ID in use or a concurrent operation.
	ExitConflict
	// ExitTimedOut reports that the wait timed out. The operation continues.
	ExitTimedOut
	// ExitOperationFailed reports that an operation, an orchestration or a Bundle for which the command waited has failed or was
	// canceled.
	ExitOperationFailed
	// ExitAuditBroken reports that the chain of the audit log is broken.
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

// instanceError reports that a command on an instance failed. It contains the ID of the instance for the hint.
type instanceError struct {
	instanceID string
	cause      error
}

// Error returns the text of the cause.
func (e *instanceError) Error() string { return e.cause.Error() }

// Unwrap returns the cause.
func (e *instanceError) Unwrap() error { return e.cause }

// exit assigns an exit code and a hint for the user to a group of errors. hintFor replaces the placeholders {command},
// {instance}, {operation} and {orchestration} in the hint.
type exit struct {
	applies func(error) bool
	code    int
	hint    string
	// lists is true if the error concerns an object that the command line names. If listsOf returns the commands that list such
	// objects, the user gets a hint that names these commands, and the field hint has no effect.
	lists bool
}

// exits returns the exit codes and hints of all errors. The first match wins, so specific errors come before the HTTP statuses
// that they wrap.
func exits() []exit {
	return []exit{
		{applies: is[*usageError], code: ExitUsage, hint: "See '{command} --help'."},
		{applies: isUnsupportedFormat, code: ExitUsage, hint: "See '{command} --help'."},
		{
			applies: is[*follow.TimedOutError], code: ExitTimedOut,
			hint: "Continue waiting with 'ebctl operation get {operation} --wait', or see 'ebctl operation explain {operation}'.",
		},
		{
			applies: is[*follow.EndedError], code: ExitOperationFailed,
			hint: "See 'ebctl operation explain {operation}' for the cause and the next steps.",
		},
		{applies: is[*orchestrationTimeoutError], code: ExitTimedOut, hint: "The orchestration continues. See 'ebctl orchestration explain {orchestration}'."},
		{applies: is[*orchestrationEndedError], code: ExitOperationFailed, hint: "See 'ebctl orchestration explain {orchestration}' for the cause and the next steps."},
		{applies: isInterrupted, code: ExitError},
		{applies: is[*bundleTimeoutError], code: ExitTimedOut, hint: "Only the wait has ended. See 'ebctl bundle get NAME' for the state."},
		{applies: is[*bundleFailedError], code: ExitOperationFailed, hint: "See docs/operator/bundles.md for the conditions and what to do."},
		{
			applies: apierrors.IsNotFound, code: ExitNotFound,
			hint: "See 'ebctl bundle list'. If that command fails too, the CustomResourceDefinitions are missing from the cluster: see docs/operator/bundles.md.",
		},
		{applies: contentStatus(http.StatusNotFound), code: ExitNotFound, hint: "See 'ebctl bundle list -o json' for the names and phases of Bundles."},
		{applies: contentStatus(http.StatusConflict), code: ExitConflict, hint: "Only a Bundle with the upload source accepts uploads. The content of an unpacked Bundle cannot change: create another one."},
		{
			applies: contentStatus(http.StatusUnauthorized, http.StatusForbidden), code: ExitError,
			hint: "The token needs the bundle-reader ClusterRole for content, and bundle-uploader for uploads: see docs/operator/bundles.md.",
		},
		{applies: apierrors.IsAlreadyExists, code: ExitConflict, hint: "See 'ebctl bundle list', or use another name."},
		{applies: apierrors.IsUnauthorized, code: ExitError, hint: "The API server rejects the credentials in the kubeconfig. Set another kubeconfig with --kubeconfig or KUBECONFIG."},
		{applies: apierrors.IsForbidden, code: ExitError, hint: "The user of the kubeconfig lacks a role for bundles and bundledeployments of core.rukpak.io."},
		{applies: is[*differentError], code: ExitDifferent},
		{applies: is[*brokenError], code: ExitAuditBroken, hint: "See docs/operator/audit.md for what to do."},
		{
			applies: is[*notFoundError], code: ExitNotFound, lists: true,
			hint: "See 'ebctl instance list', 'ebctl operation list' and 'ebctl catalog'.",
		},
		{
			applies: answered(http.StatusNotFound, http.StatusGone), code: ExitNotFound, lists: true,
			hint: "See 'ebctl instance list' and 'ebctl operation list'.",
		},
		{
			applies: isFormerCluster, code: ExitConflict,
			hint: "To remove the former cluster immediately: ebctl leftover cleanup {instance} --reason REASON. See docs/operator/leftovers.md.",
		},
		{
			applies: isConcurrency, code: ExitConflict,
			hint: "Another operation of the instance is in progress. See 'ebctl operation list --instance {instance}'.",
		},
		{
			applies: isRefusedIntervention, code: ExitConflict,
			hint: "See 'ebctl operation explain {operation}' for its state and the next steps.",
		},
		{applies: answered(http.StatusConflict), code: ExitConflict, lists: true, hint: "See 'ebctl instance list'."},
		{
			applies: answered(http.StatusUnauthorized), code: ExitError,
			hint: "Set EBCTL_USERNAME and EBCTL_PASSWORD, or use --username and --password. The credentials in the configuration file apply only to the address stored with them.",
		},
		{
			applies: isPlatformRefusal, code: ExitError,
			hint: "APP_PLATFORMS_FILE determines the platform of a user, and its regions and accounts: see docs/operator/platforms.md. " +
				"To act as another user, set --username or EBCTL_USERNAME.",
		},
		{
			applies: answered(http.StatusForbidden), code: ExitError,
			hint: "The user lacks a role. APP_AUTH_BASIC_USERS or the token issuer grants roles: see docs/operator/access.md. To act as another user, set --username or EBCTL_USERNAME.",
		},
		{
			applies: is[*brokerclient.UnreachableError], code: ExitError,
			hint: "Is the broker running? Set a different address with --address or EBCTL_ADDRESS.",
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

// hintFor returns the hint with its placeholders replaced by the path of the command and the ID of the instance, the operation or the
// orchestration in the error. It returns an empty string if there is no hint.
func (e exit) hintFor(command *cobra.Command, err error) string {
	if lists := listsOf(command); e.lists && len(lists) > 0 {
		return "See " + strings.Join(lists, " and ") + "."
	}

	// The operations of a binding are not in the list of the operations of its instance.
	if isConcurrency(err) && command.HasParent() && command.Parent().CommandPath() == "ebctl binding" {
		e.hint = "Another operation of the instance or the binding is in progress. " +
			"See 'ebctl operation list --instance {instance}' and 'ebctl binding list {instance}'."
	}

	var instance, operation, orchestration string

	if failed, ok := errors.AsType[*instanceError](err); ok {
		instance = failed.instanceID
	}

	if timedOut, ok := errors.AsType[*orchestrationTimeoutError](err); ok {
		orchestration = timedOut.id
	}

	if ended, ok := errors.AsType[*orchestrationEndedError](err); ok {
		orchestration = ended.orchestration.OrchestrationID
	}

	if timedOut, ok := errors.AsType[*follow.TimedOutError](err); ok {
		operation = timedOut.OperationID
	}

	if ended, ok := errors.AsType[*follow.EndedError](err); ok {
		operation = ended.Operation.ID
	}

	if refused, ok := errors.AsType[*interventionError](err); ok {
		operation = refused.operationID
	}

	return strings.NewReplacer(
		"{command}", command.CommandPath(), "{instance}", instance, "{operation}", operation, "{orchestration}", orchestration,
	).Replace(e.hint)
}

// is reports whether the error chain of err contains an error of type E.
func is[E error](err error) bool {
	_, found := errors.AsType[E](err)

	return found
}

// isInterrupted matches a canceled command (Ctrl-C). The user knows why it ended, so it needs no hint.
func isInterrupted(err error) bool { return errors.Is(err, context.Canceled) }

// isUnsupportedFormat matches a result that has no form in the output format.
func isUnsupportedFormat(err error) bool {
	return errors.Is(err, output.ErrNoNames) || errors.Is(err, output.ErrNoRows)
}

// answered returns a function that reports whether an error is an AnswerError with one of the given statuses.
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

// isPlatformRefusal matches a request that the broker rejected because of the platform of the user, although the user has the role. The
// error code is the same as that for a missing role, but only messages about platforms contain the word.
func isPlatformRefusal(err error) bool {
	answer, ok := errors.AsType[*brokerclient.AnswerError](err)

	return ok && answer.Status == http.StatusForbidden && strings.Contains(answer.Description, "platform")
}

// isFormerCluster matches a resumption that the broker rejected because the former cluster of the instance is a leftover. The error code
// is the same as that for another operation, but only this text contains the words.
func isFormerCluster(err error) bool {
	answer, ok := errors.AsType[*brokerclient.AnswerError](err)

	return ok && answer.Code == brokerclient.CodeConcurrency && strings.Contains(answer.Description, "former cluster")
}

// isConcurrency matches a request that the broker rejected because another operation of the instance is in progress.
func isConcurrency(err error) bool {
	answer, ok := errors.AsType[*brokerclient.AnswerError](err)

	return ok && answer.Code == brokerclient.CodeConcurrency
}
