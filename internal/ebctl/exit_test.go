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
	"github.com/environment-broker/environment-broker/internal/ebctl/output"
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
			reason: "an invalid command line",
			err:    usage("NAME is missing"), code: ExitUsage, hint: "'ebctl create --help'",
		},
		"NoRows": {
			reason: "an output format that the result does not have",
			err:    output.ErrNoRows, code: ExitUsage, hint: "'ebctl create --help'",
		},
		"NotFound": {
			reason: "a search without a match",
			err:    &notFoundError{text: "no plan"}, code: ExitNotFound, hint: "ebctl catalog",
		},
		"Status404": {
			reason: "an unknown resource",
			err:    status(404), code: ExitNotFound, hint: "ebctl instance list",
		},
		"Status410": {
			reason: "a removed resource",
			err:    status(410), code: ExitNotFound, hint: "ebctl instance list",
		},
		"Status409": {
			reason: "an id in use",
			err:    status(409), code: ExitConflict, hint: "ebctl instance list",
		},
		"Concurrency": {
			reason: "another operation",
			err:    &instanceError{instanceID: "i", cause: coded(422, "ConcurrencyError")}, code: ExitConflict, hint: "ebctl operation list --instance i'",
		},
		"FormerCluster": {
			reason: "a resumption that waits for the removal of the former cluster, not for an operation",
			err: &instanceError{instanceID: "i", cause: &brokerclient.AnswerError{
				Status: 422, Code: "ConcurrencyError", Description: "The former cluster of the instance is still being removed.",
			}},
			code: ExitConflict, hint: "ebctl leftover cleanup i --reason REASON",
		},
		"Status422": {
			reason: "another conflict",
			err:    coded(422, "AsyncRequired"), code: ExitError,
		},
		"Status400": {
			reason: "a rejected request",
			err:    status(400), code: ExitError,
		},
		"Status401": {
			reason: "missing credentials",
			err:    status(401), code: ExitError, hint: "EBCTL_USERNAME and EBCTL_PASSWORD",
		},
		"Status403": {
			reason: "a missing role",
			err:    status(403), code: ExitError, hint: "docs/operator/access.md",
		},
		"Platform": {
			reason: "a user with the role, whose platform may not use the region",
			err:    &brokerclient.AnswerError{Status: 403, Code: "Forbidden", Description: "The platform may not use this region."},
			code:   ExitError, hint: "docs/operator/platforms.md",
		},
		"Status500": {
			reason: "a failure of the broker",
			err:    status(500), code: ExitError,
		},
		"Unreachable": {
			reason: "an unreachable broker",
			err:    &brokerclient.UnreachableError{Cause: errors.New("refused")}, code: ExitError, hint: "EBCTL_ADDRESS",
		},
		"TimedOut": {
			reason: "a wait that timed out",
			err:    &follow.TimedOutError{OperationID: "op"}, code: ExitTimedOut, hint: "ebctl operation get op --wait",
		},
		"Ended": {
			reason: "a failed operation",
			err:    failed("op"), code: ExitOperationFailed, hint: "ebctl operation explain op",
		},
		"Stopped": {
			reason: "an interruption",
			err:    context.Canceled, code: ExitError,
		},
		"AnythingElse": {
			reason: "an error without a class",
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
			exit := exitFor(err)

			if exit.code != tc.code {
				t.Errorf("%s: got exit code %d, want %d", tc.reason, exit.code, tc.code)
			}

			hint := exit.hintFor(command, err)
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
