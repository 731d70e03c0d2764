package ebctl

import (
	"net/http"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"
)

// TestHintOfABindingInUse checks that the hint after a conflict with another operation leads to the operations of bindings, too.
func TestHintOfABindingInUse(t *testing.T) {
	t.Parallel()

	root := newRootCommand(&session{globals: &globals{}})
	busy := &instanceError{instanceID: "i", cause: coded(http.StatusUnprocessableEntity, "ConcurrencyError")}

	for path, want := range map[string]string{
		"instance delete": "Another operation of the instance is in progress. See 'ebctl operation list --instance i'.",
		"binding delete":  "Another operation of the instance or the binding is in progress. See 'ebctl operation list --instance i' and 'ebctl binding list i'.",
	} {
		command, _, err := root.Find(strings.Fields(path))
		if err != nil {
			t.Fatal(err)
		}

		if diff := cmp.Diff(want, exitFor(busy).hintFor(command, busy)); diff != "" {
			t.Errorf("%s: -want +got\n%s", path, diff)
		}
	}
}

// TestListsInHints compares the hint for an unknown object of each kind with the lists in which to look for it, and checks that the
// suggested commands exist.
func TestListsInHints(t *testing.T) {
	t.Parallel()

	root := newRootCommand(&session{globals: &globals{}})
	missing := status(http.StatusNotFound)
	quoted := regexp.MustCompile(`'(ebctl [a-z ]+)`)

	for path, want := range map[string]string{
		"job run":                  "See 'ebctl job list'.",
		"webhook replay":           "See 'ebctl webhook list'.",
		"orchestration pause":      "See 'ebctl orchestration list'.",
		"orchestration start kyma": "See 'ebctl instance list' and 'ebctl operation list'.",
		"upgrade show":             "See 'ebctl upgrade plans'.",
		"upgrade apply":            "See 'ebctl upgrade plans'.",
		"upgrade kyma":             "See 'ebctl instance list' and 'ebctl operation list'.",
		"process show":             "See 'ebctl process list'.",
		"context use":              "See 'ebctl context list'.",
		"bundle get":               "See 'ebctl bundle list'.",
		"audit get":                "See 'ebctl audit list'.",
		"accounts release":         "See 'ebctl accounts list' and docs/operator/account-pool.md.",
		"binding get":              "See 'ebctl instance list' and 'ebctl binding list INSTANCE'.",
		"platform move":            "See 'ebctl instance list' and 'ebctl platform list'.",
		"credentials renew":        "See 'ebctl instance list' and 'ebctl credentials list'.",
		"leftover cleanup":         "See 'ebctl instance list --leftovers'.",
		"instance get":             "See 'ebctl instance list' and 'ebctl operation list'.",
		"instance list":            "See 'ebctl instance list' and 'ebctl operation list'.",
		"operation explain":        "See 'ebctl instance list' and 'ebctl operation list'.",
		"operation list":           "See 'ebctl instance list' and 'ebctl operation list'.",
		"event watch":              "See 'ebctl instance list' and 'ebctl operation list'.",
		"account erase":            "See 'ebctl instance list' and 'ebctl operation list'.",
	} {
		command := find(t, root, path)

		if diff := cmp.Diff(want, exitFor(missing).hintFor(command, missing)); diff != "" {
			t.Errorf("%s: -want +got\n%s", path, diff)
		}

		for _, suggested := range quoted.FindAllStringSubmatch(want, -1) {
			find(t, root, strings.TrimPrefix(suggested[1], "ebctl "))
		}
	}

	job := find(t, root, "job run")
	if hint := exitFor(status(http.StatusForbidden)).hintFor(job, status(http.StatusForbidden)); strings.Contains(hint, "list") {
		t.Errorf("a missing role: %s", hint)
	}
}

// find returns the command with the given path.
func find(t *testing.T, root *cobra.Command, path string) *cobra.Command {
	t.Helper()

	command, rest, err := root.Find(strings.Fields(path))
	if err != nil || len(rest) > 0 {
		t.Fatalf("there is no command %s: %v", path, err)
	}

	return command
}
