package ebctl

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/environment-broker/environment-broker/internal/ebctl/brokerclient"
	"github.com/environment-broker/environment-broker/internal/ebctl/follow"
	"github.com/environment-broker/environment-broker/internal/operatorapi"
)

func TestEnds(t *testing.T) {
	t.Parallel()

	cases := map[string]struct {
		reason string
		err    error
		code   int
		hint   string
	}{
		"Usage": {
			reason: "a command line that makes no sense",
			err:    usage("NAME is missing"), code: ExitUsage, hint: "'ebctl create --help'",
		},
		"NotFound": {
			reason: "something that a search did not find",
			err:    &notFoundError{text: "no plan"}, code: ExitNotFound, hint: "ebctl catalog",
		},
		"Status404": {
			reason: "something that the broker does not know",
			err:    status(404), code: ExitNotFound, hint: "ebctl instance list",
		},
		"Status410": {
			reason: "something that the broker has removed",
			err:    status(410), code: ExitNotFound, hint: "ebctl instance list",
		},
		"Status409": {
			reason: "an id in use",
			err:    status(409), code: ExitConflict, hint: "ebctl instance list",
		},
		"Concurrency": {
			reason: "another operation",
			err:    coded(422, "ConcurrencyError"), code: ExitConflict, hint: "ebctl operation list",
		},
		"Status422": {
			reason: "any other refusal",
			err:    coded(422, "AsyncRequired"), code: ExitError,
		},
		"Status400": {
			reason: "a request that the broker refuses",
			err:    status(400), code: ExitError,
		},
		"Status401": {
			reason: "credentials are missing",
			err:    status(401), code: ExitError, hint: "EBCTL_USERNAME and EBCTL_PASSWORD",
		},
		"Status403": {
			reason: "a role is missing",
			err:    status(403), code: ExitError, hint: "admin for kubeconfigs",
		},
		"Status500": {
			reason: "a fault of the broker",
			err:    status(500), code: ExitError,
		},
		"Unreachable": {
			reason: "a broker that is not there",
			err:    &brokerclient.UnreachableError{Cause: errors.New("refused")}, code: ExitError, hint: "EBCTL_ADDRESS",
		},
		"TimedOut": {
			reason: "a wait that took too long",
			err:    &follow.TimedOutError{OperationID: "op"}, code: ExitTimedOut, hint: "ebctl operation get op --wait",
		},
		"Ended": {
			reason: "an operation that failed",
			err:    failed("op"), code: ExitOperationFailed, hint: "ebctl operation explain op",
		},
		"Stopped": {
			reason: "a user who has enough",
			err:    context.Canceled, code: ExitError,
		},
		"AnythingElse": {
			reason: "an error that nobody thought of",
			err:    errors.New("disk full"), code: ExitError,
		},
	}

	command := &cobra.Command{Use: "create"}
	root := &cobra.Command{Use: "ebctl"}
	root.AddCommand(command)

	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			err := fmt.Errorf("doing something: %w", tc.err)
			end := endOf(err)

			if end.code != tc.code {
				t.Errorf("%s: got exit code %d, want %d", tc.reason, end.code, tc.code)
			}

			hint := end.hintFor(command, err)
			if !strings.Contains(hint, tc.hint) || (hint == "") != (tc.hint == "") {
				t.Errorf("%s: got hint %q, want one with %q", tc.reason, hint, tc.hint)
			}
		})
	}
}

func status(status int) error { return coded(status, "") }

func coded(status int, code string) error {
	return &brokerclient.AnswerError{Status: status, Code: code}
}

func failed(id string) error {
	return &follow.EndedError{Operation: operatorapi.Operation{ID: id, State: "failed"}}
}
