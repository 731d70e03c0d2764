package ebctl

import (
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/environment-broker/environment-broker/internal/ebctl/output"
)

// commandsWithoutRows returns the paths of the commands whose results have no rows, so that they have no form in CSV. Each test that runs
// such a command fails if the list lacks it.
func commandsWithoutRows() []string {
	return []string{
		"ebctl operation explain", "ebctl provisioner operation explain",
		"ebctl orchestration explain", "ebctl orchestration undo",
		"ebctl upgrade plan kyma", "ebctl upgrade plan cluster", "ebctl upgrade show", "ebctl upgrade apply",
		"ebctl adopt shoot", "ebctl top", "ebctl provisioner top",
		"ebctl bundle create", "ebctl bundle diff", "ebctl bundle get", "ebctl bundle resume", "ebctl bundle rollback", "ebctl bundle run",
		"ebctl bundle suspend",
	}
}

// rejectCSV makes the command and its subcommands fail with a usage error before their first request if their results have no form in
// CSV, but the user wants CSV.
func (s *session) rejectCSV(command *cobra.Command) {
	if run := command.RunE; slices.Contains(commandsWithoutRows(), command.CommandPath()) {
		formats := slices.DeleteFunc(output.Formats(), func(name string) bool { return name == string(output.CSV) })

		command.RunE = func(command *cobra.Command, args []string) error {
			if s.format == output.CSV {
				return usage("the result is not a list: use one of the formats %s instead of csv", strings.Join(formats, ", "))
			}

			return run(command, args)
		}
	}

	for _, child := range command.Commands() {
		s.rejectCSV(child)
	}
}

// helpNoHeaders is the help text of the --no-headers flag, which all list commands have.
const helpNoHeaders = "print tables without their header"

// addNoHeaders adds the --no-headers flag to the list commands that a lister has not created.
func (s *session) addNoHeaders(command *cobra.Command) {
	if flags := command.Flags(); command.Name() == listCommand && flags.Lookup("no-headers") == nil {
		flags.BoolVar(&s.noHeaders, "no-headers", false, helpNoHeaders)
	}

	for _, child := range command.Commands() {
		s.addNoHeaders(child)
	}
}
