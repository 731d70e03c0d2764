package ebctl

import (
	"context"
	"fmt"

	"github.com/dustin/go-humanize/english"
	"github.com/spf13/cobra"

	"github.com/environment-broker/environment-broker/internal/ebctl/brokerclient"
	"github.com/environment-broker/environment-broker/internal/environment"
	"github.com/environment-broker/environment-broker/internal/operatorapi"
)

func newOrchestrationUndoCommand(session *session) *cobra.Command {
	var wanted operatorapi.OrchestrationUndo

	command := addYes(session, session.onOrchestration(&cobra.Command{
		Use:   "undo ORCHESTRATION",
		Short: "Roll back the Kyma upgrades of an orchestration",
		Long: "Roll back the Kyma upgrades of an orchestration that has ended.\n\n" +
			"The Provisioner rolls back each successful upgrade: it reinstalls Kyma as it was before the upgrade. The undo is itself an orchestration, and has " +
			"the limits of the original orchestration. It leaves out instances whose upgrades failed, and instances whose Kyma has changed since then. Cluster upgrades cannot " +
			"be undone, because Kubernetes versions cannot be lowered. If the command is repeated, it returns the running undo.\n\n" +
			"With --dry-run, the broker stores the undo as a plan and shows it. 'ebctl upgrade apply' applies it.\n\n" +
			"The command needs the operator role. The audit log records your name.",
		Example: "  ebctl orchestration undo 1b6c2a54-3a49-4a3e-9a02-0f5f7b6f1c11 --dry-run",
	}, arguments("ORCHESTRATION"), func(ctx context.Context, client *brokerclient.Client, id string, _ []string) error {
		if !wanted.DryRun {
			found, err := client.GetOrchestration(ctx, id)
			if err != nil {
				return fmt.Errorf("reading orchestration %s: %w", id, err)
			}

			if err := session.confirm(ctx, "Roll back %s?", english.Plural(found.OperationStats[string(environment.TargetSucceeded)], "instance", "")); err != nil {
				return err
			}
		}

		undo, err := client.UndoOrchestration(ctx, id, wanted)
		if err != nil {
			return fmt.Errorf("undoing orchestration %s: %w", id, err)
		}

		return session.printPlan(ctx, client, undo.OrchestrationID)
	}))
	command.Flags().BoolVar(&wanted.DryRun, "dry-run", false, "only store a plan, and do not roll back anything")

	return command
}
