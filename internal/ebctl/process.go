package ebctl

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/environment-broker/environment-broker/internal/ebctl/brokerclient"
	"github.com/environment-broker/environment-broker/internal/ebctl/output"
	"github.com/environment-broker/environment-broker/internal/operatorapi"
)

func newProcessListCommand(session *session) *cobra.Command {
	return &cobra.Command{
		Use:   listCommand,
		Short: "List the processes of all kinds of operations",
		Args:  arguments(),
		RunE: session.withClient(func(ctx context.Context, client *brokerclient.Client, _ []string) error {
			list, err := client.ListProcesses(ctx)
			if err != nil {
				return fmt.Errorf("listing the processes: %w", err)
			}

			table := output.Rows{Head: []string{"KIND", "STEPS", "LIMIT", "SYSTEMS"}, IDs: []string{}}

			for _, process := range list.Data {
				table.Add(process.Kind,
					process.Kind, strconv.Itoa(len(process.Steps)), process.Limit, strings.Join(systemsOf(process), ", "))
			}

			return session.print(list, table)
		}),
	}
}

// systemsOf returns the systems that the process calls, in the order in which it first calls them. A step can call several, such as
// "Gardener, runtime or bundle provisioner". systemsOf omits systems that the configuration turns off.
func systemsOf(process operatorapi.Process) []string {
	var systems []string

	seen := map[string]bool{"": true}

	for _, step := range process.Steps {
		for system := range strings.SplitSeq(strings.ReplaceAll(step.System, " or ", ", "), ", ") {
			if !step.Off && !seen[system] {
				systems = append(systems, system)
				seen[system] = true
			}
		}
	}

	return systems
}

func newProcessShowCommand(session *session) *cobra.Command {
	return &cobra.Command{
		Use:   "show KIND",
		Short: "Show the steps of a process in the order in which they run",
		Long: "Show the steps of a process in the order in which they run.\n\nA step with the condition 'off' is turned off by the " +
			"configuration. The RETRY column shows the pauses between attempts, and the CREATES column shows the objects that a step creates in the system.",
		Args: arguments("KIND"),
		RunE: session.withClient(func(ctx context.Context, client *brokerclient.Client, args []string) error {
			list, err := client.ListProcesses(ctx)
			if err != nil {
				return fmt.Errorf("reading the processes: %w", err)
			}

			var kinds []string

			for _, process := range list.Data {
				if process.Kind == args[0] {
					return session.print(process, stepRows(process))
				}

				kinds = append(kinds, process.Kind)
			}

			return usage("unknown process %q: use one of %s", args[0], strings.Join(kinds, ", "))
		}),
	}
}

func stepRows(process operatorapi.Process) output.Rows {
	table := output.Rows{
		Head: []string{"STAGE", "STEP", "WHAT IT DOES", "SYSTEM", "CONDITION", "RETRY", "LIMIT", "AFTER THE LIMIT", "SKIPPABLE", "CREATES"}, IDs: []string{},
	}

	for _, step := range process.Steps {
		condition, after, skippable := step.Condition, "operation fails", ""
		if step.Off {
			condition = "off: " + condition
		}

		if step.Optional {
			after = "operation continues"
		}

		if step.Skippable {
			skippable = "yes"
		}

		table.Add(step.Step,
			step.Stage, step.Step, step.Does, step.System, condition, step.Retry, step.Limit, after, skippable, step.Creates)
	}

	return table
}
