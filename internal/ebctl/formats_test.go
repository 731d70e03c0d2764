package ebctl

import (
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

// TestCommandsWithoutRowsExist checks that each command without a form in CSV exists and rejects the format before it reads its
// configuration or sends a request.
func TestCommandsWithoutRowsExist(t *testing.T) {
	t.Parallel()

	for _, path := range commandsWithoutRows() {
		session := &session{globals: &globals{}}
		root := newRootCommand(session)

		command, rest, err := root.Find(strings.Fields(path)[1:])
		if err != nil || len(rest) > 0 || command.CommandPath() != path {
			t.Errorf("%s does not exist: found %s, %v", path, command.CommandPath(), err)

			continue
		}

		session.format = "csv"
		if err := command.RunE(command, []string{"NAME", "FOLDER"}); err == nil || exitFor(err).code != ExitUsage ||
			!strings.Contains(err.Error(), "table, wide, name, json, yaml, jsonpath=, go-template=") {
			t.Errorf("%s -o csv: %v, want a usage error with the formats", path, err)
		}
	}
}

// TestListsCanOmitTheirHeaders checks that all commands that list something have the same flag.
func TestListsCanOmitTheirHeaders(t *testing.T) {
	t.Parallel()

	var (
		lists int
		check func(command *cobra.Command)
	)

	check = func(command *cobra.Command) {
		if command.Name() == listCommand {
			lists++

			if command.Flags().Lookup("no-headers") == nil {
				t.Errorf("%s has no flag --no-headers", command.CommandPath())
			}
		}

		for _, child := range command.Commands() {
			check(child)
		}
	}

	check(newRootCommand(&session{globals: &globals{}}))

	if lists == 0 {
		t.Error("no command lists anything")
	}
}
