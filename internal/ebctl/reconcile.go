package ebctl

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/environment-broker/environment-broker/internal/ebctl/brokerclient"
	"github.com/environment-broker/environment-broker/internal/ebctl/output"
	"github.com/environment-broker/environment-broker/internal/operatorapi"
)

// errIncomplete reports that a comparison left out at least one system. The command has already printed these systems.
var errIncomplete = errors.New("the comparison is incomplete")

// newReconcileCommand returns the command that lists differences between the databases, Gardener and Director, and restores lost
// database rows. 'ebctl reconcile' restores the rows of the broker and the Provisioner; 'ebctl provisioner reconcile' restores
// only the Provisioner's rows.
func newReconcileCommand(session *session) *cobra.Command {
	var dryRun, bindings bool

	command := addYes(session, &cobra.Command{
		Use:   "reconcile",
		Short: "List differences between the services, Gardener and Director, and restore lost database rows",
		Long:  reconcileHelp(session),
		Example: session.text("  ebctl reconcile --dry-run\n" +
			"  ebctl reconcile --dry-run -o json\n" +
			"  ebctl reconcile"),
		Args: arguments(),
		RunE: session.withClient(func(ctx context.Context, client *brokerclient.Client, _ []string) error {
			if bindings && !dryRun {
				return usage("--bindings requires --dry-run: lost bindings cannot be restored")
			}

			if session.format == output.CSV && !dryRun {
				return usage("-o csv requires --dry-run")
			}

			found, err := differences(ctx, client, bindings)
			if err != nil {
				return fmt.Errorf("comparing the services: %w", err)
			}

			if !dryRun && slices.ContainsFunc(found.Data, func(each operatorapi.Difference) bool { return each.Restorable }) {
				return session.restore(ctx, client)
			}

			if err := session.print(found, differencesText(found.Data)); err != nil {
				return err
			}

			if !dryRun {
				fmt.Fprintln(session.Err, "There is nothing to restore.")
			}

			return session.incomplete(found.Incomplete)
		}),
	})

	command.Flags().BoolVar(&dryRun, "dry-run", false, "only list the differences")

	if !session.provisioner {
		command.Flags().BoolVar(&bindings, "bindings", false,
			"also search all runtimes for ServiceAccounts of unknown bindings, which takes several calls for each runtime; requires --dry-run")
	}

	return command
}

func reconcileHelp(session *session) string {
	const common = "A difference is an object that exists on only one side, such as a Shoot without a runtime after the database was restored " +
		"to an earlier time. Objects with unfinished operations are not compared. --dry-run lists the differences, with their meanings and the " +
		"commands that resolve them; -o wide and -o json show all fields. A dry run needs the operator role.\n\n"

	if session.provisioner {
		return "Compare the runtimes of the Provisioner with Gardener and Director, and restore lost database rows.\n\n" + common +
			"Without --dry-run, the command restores the rows of runtimes from the records in their Shoots. The audit log records each restored row. " +
			"Clusters and registrations never change. A restoration needs the admin role."
	}

	return "Compare the broker with the Provisioner, Gardener and Director, and restore lost database rows.\n\n" + common +
		"Without --dry-run, the command restores the rows of runtimes at the Provisioner, then the rows of instances at the broker. The audit " +
		"logs record each restored row. Clusters, registrations and credentials never change. Repeat the command if it was interrupted. A restoration needs the admin " +
		"role at both services. The address and the credentials for the Provisioner come from EBCTL_PROVISIONER_ADDRESS and the other EBCTL_PROVISIONER_ variables, or from the context."
}

// differences reads all pages of the report.
func differences(ctx context.Context, client *brokerclient.Client, bindings bool) (operatorapi.DifferenceList, error) {
	all := operatorapi.DifferenceList{Data: []operatorapi.Difference{}}

	for difference, err := range brokerclient.All(func(cursor string) ([]operatorapi.Difference, string, error) {
		page, err := client.ListDifferences(ctx, operatorapi.ListDifferencesParams{Bindings: bindings, Cursor: cursor})
		all.Incomplete = append(all.Incomplete, page.Incomplete...)

		return page.Data, page.Cursor, err
	}) {
		if err != nil {
			return all, err
		}

		all.Data = append(all.Data, difference)
	}

	all.Count = len(all.Data)

	return all, nil
}

// restore restores the rows of the Provisioner and then, unless the session is for the Provisioner, the rows of the broker.
func (s *session) restore(ctx context.Context, client *brokerclient.Client) error {
	if err := s.confirm(ctx, "Restore all rows that can be restored?"); err != nil {
		return err
	}

	provisioner := client

	if !s.provisioner {
		// Ignore the flags, because they contain the settings of the broker.
		resolved, err := Resolve(Sources{ConfigFile: s.configFile, Context: s.contextName, Environment: s.Environment, Provisioner: true})
		if err != nil {
			return &usageError{cause: err}
		}

		other := *s
		other.provisioner = true
		provisioner = other.clientOf(resolved)
	}

	result, err := restoreAll(ctx, provisioner)
	if err != nil {
		return fmt.Errorf("restoring rows of the Provisioner: %w", err)
	}

	if !s.provisioner {
		restored := result.Restored

		if result, err = restoreAll(ctx, client); err != nil {
			return fmt.Errorf("restoring rows of the broker: %w", err)
		}

		result.Restored = append(restored, result.Restored...) // the report of the broker includes the remaining differences of the Provisioner
	}

	if err := s.print(result, restorationText{result}); err != nil {
		return err
	}

	return s.incomplete(result.Incomplete)
}

// restoreAll restores the lost rows of one service, page by page, and returns the combined results.
func restoreAll(ctx context.Context, client *brokerclient.Client) (operatorapi.Restoration, error) {
	sum := operatorapi.Restoration{Restored: []operatorapi.Difference{}, Remaining: []operatorapi.Difference{}}

	for cursor := ""; ; {
		page, err := client.RestoreDifferences(ctx, operatorapi.Restore{Cursor: cursor})
		if err != nil {
			return sum, err
		}

		sum.Restored, sum.Remaining = append(sum.Restored, page.Restored...), append(sum.Remaining, page.Remaining...)
		sum.Incomplete = append(sum.Incomplete, page.Incomplete...)

		if page.Cursor == "" || page.Cursor == cursor {
			return sum, nil
		}

		cursor = page.Cursor
	}
}

// incomplete prints the systems that were not compared, and returns an error if there are any.
func (s *session) incomplete(texts []string) error {
	if len(texts) == 0 {
		return nil
	}

	slices.Sort(texts)

	for _, text := range slices.Compact(texts) {
		fmt.Fprintf(s.Err, "Not compared: %s\n", output.Line(text))
	}

	return errIncomplete
}

// differencesText prints the report for people: a table, followed by the meaning of each difference and its commands.
type differencesText []operatorapi.Difference

// Names implements output.Named.
func (d differencesText) Names() []string { return d.rows().IDs }

// Wide implements output.Widened.
func (d differencesText) Wide() output.Rows { return d.rows().Wide() }

// WriteText implements output.Text.
func (d differencesText) WriteText(w io.Writer) error {
	if err := d.rows().WriteText(w); err != nil {
		return err
	}

	for _, each := range d {
		lines := []string{"", fmt.Sprintf("%s %s", each.Kind, each.ID), "  " + each.Meaning}

		switch {
		case each.Restorable:
			lines = append(lines, "  Restore the database row with 'ebctl reconcile'.")
		case each.Reason != "":
			lines = append(lines, "  The database row cannot be restored: "+each.Reason+".")
		}

		for _, command := range each.Commands {
			lines = append(lines, "  $ "+command)
		}

		for _, line := range lines {
			if _, err := fmt.Fprintln(w, strings.TrimRight(line[:len(line)-len(strings.TrimLeft(line, " "))]+output.Line(line), " ")); err != nil {
				return fmt.Errorf("printing the result: %w", err)
			}
		}
	}

	return nil
}

func (d differencesText) rows() output.Rows {
	table := output.Rows{
		Head:        []string{"KIND", "ID", headInstance, "SHOOT", "ACCOUNT", "RESTORABLE", "MEANING", "REASON", "COMMANDS"},
		WideColumns: 3, // the descriptions, which WriteText prints below the table
		None:        "No differences found.",
		IDs:         []string{},
	}

	for _, each := range d {
		restorable := "no"
		if each.Restorable {
			restorable = "yes"
		}

		table.Add(each.ID,
			string(each.Kind), each.ID, each.InstanceID, each.ShootName, each.AccountID, restorable, each.Meaning, each.Reason, strings.Join(each.Commands, "; "))
	}

	return table
}

// restorationText prints the result of a restoration for people.
type restorationText struct{ operatorapi.Restoration }

// Names implements output.Named. It returns the IDs of the restored rows.
func (r restorationText) Names() []string { return differencesText(r.Restored).Names() }

// WriteText implements output.Text.
func (r restorationText) WriteText(w io.Writer) error {
	for _, each := range r.Restored {
		noun := "runtime"
		if each.Kind == operatorapi.DifferenceKindRuntimeWithoutInstance {
			noun = "instance"
		}

		if _, err := fmt.Fprintln(w, output.Line(fmt.Sprintf("Restored the row of the %s: instance %s, runtime %s, Shoot %s",
			noun, each.InstanceID, each.RuntimeID, each.ShootName))); err != nil {
			return fmt.Errorf("printing the result: %w", err)
		}
	}

	if len(r.Remaining) == 0 {
		_, err := fmt.Fprintln(w, "No differences remain.")

		return err
	}

	if _, err := fmt.Fprintln(w, "These differences remain:"); err != nil {
		return fmt.Errorf("printing the result: %w", err)
	}

	return differencesText(r.Remaining).WriteText(w)
}
