package ebctl

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/environment-broker/environment-broker/internal/ebctl/brokerclient"
	"github.com/environment-broker/environment-broker/internal/ebctl/output"
	"github.com/environment-broker/environment-broker/internal/operatorapi"
)

// newLeftoverCommand returns the group of commands that change leftovers. 'ebctl instance list --leftovers' lists them.
func newLeftoverCommand(session *session) *cobra.Command {
	command := group("leftover", "Clean up the leftovers of deletions and suspensions",
		newLeftoverCleanupCommand(session),
		newLeftoverConfirmCommand(session),
	)
	command.Long = command.Short + ".\n\nIf a deletion cannot complete a step, such as the removal of an instance from another system, the deletion continues without this step, and the " +
		"instance no longer exists for its users. The broker runs such steps again once a day. 'ebctl instance list --leftovers' lists what is left."

	return command
}

func newLeftoverCleanupCommand(session *session) *cobra.Command {
	var (
		dryRun bool
		reason string
	)

	command := &cobra.Command{
		Use:   "cleanup [LEFTOVER_OR_INSTANCE...]",
		Short: "Run the uncompleted steps of the given leftovers again, or of all leftovers",
		Long: "Run the uncompleted steps of the given leftovers again, or of all leftovers.\n\n" +
			"Each leftover gets an operation of kind cleanup, which runs only these steps. If a leftover's cleanup is already running, no second one is started. " +
			"The broker also starts such cleanups once a day." + helpAudited,
		Example: "  ebctl leftover cleanup --dry-run\n" +
			"  ebctl leftover cleanup --reason \"EDP is back\"",
		Args: cobra.ArbitraryArgs,
		RunE: session.withClient(func(ctx context.Context, client *brokerclient.Client, args []string) error {
			chosen, err := chooseLeftovers(ctx, client, args)
			if err != nil {
				return err
			}

			if dryRun {
				table, row := session.leftoverTable()
				for _, each := range chosen.Data {
					table.Add(each.Leftover.ID, row(each)...)
				}

				return session.print(chosen, table)
			}

			return session.cleanUp(ctx, client, chosen.Data, reason)
		}),
	}

	command.Flags().BoolVar(&dryRun, "dry-run", false, "only list what would be cleaned up")
	addReason(command, &reason, &dryRun, "the timelines, the audit log and the broker's log")

	return command
}

// cleanUp starts a cleanup for each leftover and prints the started operations. It stops at the first error.
func (s *session) cleanUp(ctx context.Context, client *brokerclient.Client, leftovers []operatorapi.Runtime, reason string) error {
	started := operatorapi.OperationList{Data: []operatorapi.Operation{}}
	table := output.Rows{Head: []string{"OPERATION", headInstance, "STEPS"}, None: "There is nothing to clean up.", IDs: []string{}}

	for _, each := range leftovers {
		operation, err := client.CleanLeftover(ctx, each.Leftover.ID, operatorapi.Justification{Reason: reason})
		if err != nil {
			return fmt.Errorf("cleaning up the leftover %s: %w", each.Leftover.ID, err)
		}

		started.Data = append(started.Data, operation)
		table.Add(operation.ID, operation.ID, each.InstanceID, strings.Join(each.Leftover.Steps, ", "))
	}

	started.Count = len(started.Data)

	return s.print(started, table)
}

// newLeftoverConfirmCommand returns the command with which an operator confirms that everything was removed by hand. The broker
// then removes the leftover from its list.
func newLeftoverConfirmCommand(session *session) *cobra.Command {
	var reason string

	command := addYes(session, &cobra.Command{
		Use:   "confirm LEFTOVER",
		Short: "Confirm that you have done the uncompleted steps by hand and nothing is left",
		Long: "Confirm that you have done the uncompleted steps by hand and nothing is left.\n\n" +
			"The broker then forgets the leftover and its objects. It does not call any other system." + helpAudited,
		Args: arguments("LEFTOVER"),
		RunE: session.withClient(func(ctx context.Context, client *brokerclient.Client, args []string) error {
			chosen, err := chooseLeftovers(ctx, client, args)
			if err != nil {
				return err
			}

			if len(chosen.Data) > 1 {
				return usage("instance %s has several leftovers: specify a leftover by its ID", args[0])
			}

			left := chosen.Data[0]
			if err := session.confirm(ctx, "Forget what is left of instance %s (%s)?", left.InstanceID, strings.Join(left.Leftover.Steps, ", ")); err != nil {
				return err
			}

			forgotten, err := client.ConfirmLeftover(ctx, left.Leftover.ID, operatorapi.Justification{Reason: reason})
			if err != nil {
				return fmt.Errorf("confirming the leftover %s: %w", left.Leftover.ID, err)
			}

			return session.print(forgotten, output.WithID{ID: forgotten.ID, Text: output.Fields{
				{Name: "Forgotten", Value: forgotten.ID},
				{Name: "Instance", Value: left.InstanceID},
				{Name: "Steps", Value: strings.Join(forgotten.Steps, ", ")},
				{Name: "Objects", Value: objectsText(forgotten.Objects)},
			}})
		}),
	})

	addReason(command, &reason, nil, "the audit log and the broker's log")

	return command
}

// chooseLeftovers returns the leftovers with the given IDs, and the leftovers of instances with the given IDs, or all leftovers
// if args is empty. It fails if an argument matches no leftover.
func chooseLeftovers(ctx context.Context, client *brokerclient.Client, args []string) (operatorapi.RuntimeList, error) {
	chosen, found := operatorapi.RuntimeList{Data: []operatorapi.Runtime{}}, map[string]bool{}

	for left, err := range brokerclient.All(func(cursor string) ([]operatorapi.Runtime, string, error) {
		page, err := client.ListRuntimes(ctx, operatorapi.ListRuntimesParams{Leftovers: true, Cursor: cursor})

		return page.Data, page.Cursor, err
	}) {
		if err != nil {
			return chosen, fmt.Errorf("listing leftovers: %w", err)
		}

		for _, name := range []string{left.Leftover.ID, left.InstanceID} {
			found[name] = true
		}

		if len(args) == 0 || slices.Contains(args, left.Leftover.ID) || slices.Contains(args, left.InstanceID) {
			chosen.Data = append(chosen.Data, left)
		}
	}

	for _, arg := range args {
		if !found[arg] {
			return chosen, &notFoundError{text: fmt.Sprintf("no leftover has the ID %s, and no instance with this ID has leftovers", arg)}
		}
	}

	chosen.Count = len(chosen.Data)

	return chosen, nil
}

// leftoverTable returns the table of leftovers without its rows, and a function that returns the cells of one leftover.
func (s *session) leftoverTable() (output.Rows, func(operatorapi.Runtime) []string) {
	table := output.Rows{
		Head:        []string{"LEFTOVER", headInstance, "PLAN", "STEPS", "DELETED", "RETRY", "OBJECTS", "LAST OPERATION", "ACCOUNT", "CLUSTER"},
		WideColumns: 3, // the last operation, the account and the cluster
		None:        "Nothing is left over.",
		IDs:         []string{},
	}

	return table, func(runtime operatorapi.Runtime) []string {
		last := runtime.Status.LastOperation

		return []string{
			runtime.Leftover.ID, runtime.InstanceID, runtime.ServicePlanName, strings.Join(runtime.Leftover.Steps, ", "),
			s.age(runtime.Status.DeletedAt), runtime.Leftover.RetryAt.UTC().Format("2006-01-02 15:04"), objectsText(runtime.Leftover.Objects),
			strings.TrimSpace(last.Kind + " " + last.ID + " " + string(last.State)), runtime.GlobalAccountID, runtime.ShootName,
		}
	}
}

// objectsText returns the system, kind and name of each object, separated by commas.
func objectsText(objects []operatorapi.OutsideObject) string {
	texts := make([]string, 0, len(objects))
	for _, object := range objects {
		texts = append(texts, strings.TrimSpace(object.System+" "+object.Kind+" "+object.Name))
	}

	return strings.Join(texts, ", ")
}
