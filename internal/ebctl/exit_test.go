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
		"Usage":        {"a command line that makes no sense", usage("NAME is missing"), ExitUsage, "'ebctl create --help'"},
		"NotFound":     {"something that a search did not find", &notFoundError{text: "no plan"}, ExitNotFound, "ebctl catalog"},
		"Status404":    {"something that the broker does not know", status(404), ExitNotFound, "ebctl instance list"},
		"Status410":    {"something that the broker has removed", status(410), ExitNotFound, "ebctl instance list"},
		"Status409":    {"an id in use", status(409), ExitConflict, "ebctl instance list"},
		"Concurrency":  {"another operation", coded(422, "ConcurrencyError"), ExitConflict, "ebctl operation list"},
		"Status422":    {"any other refusal", coded(422, "AsyncRequired"), ExitError, ""},
		"Status400":    {"a request that the broker refuses", status(400), ExitError, ""},
		"Status401":    {"credentials are missing", status(401), ExitError, "EBCTL_USERNAME and EBCTL_PASSWORD"},
		"Status403":    {"a role is missing", status(403), ExitError, "admin for kubeconfigs"},
		"Status500":    {"a fault of the broker", status(500), ExitError, ""},
		"Unreachable":  {"a broker that is not there", &brokerclient.UnreachableError{Cause: errors.New("refused")}, ExitError, "EBCTL_ADDRESS"},
		"TimedOut":     {"a wait that took too long", &follow.TimedOutError{OperationID: "op"}, ExitTimedOut, "ebctl operation get op --wait"},
		"Ended":        {"an operation that failed", failed("op"), ExitOperationFailed, "ebctl operation explain op"},
		"Stopped":      {"a user who has enough", context.Canceled, ExitError, ""},
		"AnythingElse": {"an error that nobody thought of", errors.New("disk full"), ExitError, ""},
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
