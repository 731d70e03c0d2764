package ebctl

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/environment-broker/environment-broker/internal/ebctl/brokerclient"
	"github.com/environment-broker/environment-broker/internal/ebctl/output"
	"github.com/environment-broker/environment-broker/internal/operatorapi"
)

// helpUpgrade is the last paragraph in the help texts of the upgrade commands.
const helpUpgrade = "\n\nThe command needs the operator role. The instance must not have another unfinished operation. If the instance is deleted or " +
	"suspended in the meantime, the upgrade ends as preempted. With --dry-run, the command shows the versions and the steps, and the broker calls no other system."

func newUpgradeCommand(session *session) *cobra.Command {
	return group("upgrade", "Upgrade Kyma or the cluster of an instance, or plan the upgrades of many",
		newUpgradeOneCommand(session, "Kyma", "the default is the version of the subaccount or the global account or, if there is none, APP_KYMA_VERSION of the broker", (*brokerclient.Client).UpgradeKyma, cobra.Command{
			Use:   "kyma ID_OR_NAME",
			Short: "Upgrade Kyma on an instance's cluster",
			Long: "Upgrade Kyma on an instance's cluster.\n\nThe cluster gets the components and values that the catalog and the control " +
				"plane currently have for its plan, even if the version stays the same." + helpUpgrade,
			Example: "  ebctl upgrade kyma my-runtime --dry-run\n  ebctl upgrade kyma my-runtime --version 2.1.0 --wait",
		}),
		newUpgradeOneCommand(session, "the cluster", "the default is the plan's Kubernetes version for new clusters", (*brokerclient.Client).UpgradeCluster, cobra.Command{
			Use:     "cluster ID_OR_NAME",
			Short:   "Upgrade Kubernetes on an instance's cluster",
			Long:    "Upgrade Kubernetes on an instance's cluster." + helpUpgrade,
			Example: "  ebctl upgrade cluster my-runtime --version 1.35 --wait",
		}),
		newUpgradePlanCommand(session), newUpgradePlansCommand(session), newUpgradeShowCommand(session), newUpgradeApplyCommand(session),
	)
}

// newUpgradeOneCommand turns a command into one that upgrades a single instance. The parameter what, "Kyma" or "the cluster",
// appears in error messages.
func newUpgradeOneCommand(session *session, what, versionHelp string,
	send func(client *brokerclient.Client, ctx context.Context, instanceID string, body operatorapi.Upgrade) (operatorapi.AcceptedUpgrade, error),
	command cobra.Command,
) *cobra.Command {
	var (
		wanted  operatorapi.Upgrade
		waiting waiting
	)

	session.onInstance(&command, func(ctx context.Context, instance target, _ []string) error {
		accepted, err := send(instance.Client, ctx, instance.InstanceID, wanted)
		if err != nil {
			return fmt.Errorf("upgrading %s of instance %s: %w", what, instance.InstanceID, err)
		}

		if !wanted.DryRun {
			return session.finish(ctx, instance.Client, instance.InstanceID, brokerclient.Accepted{Operation: accepted.Operation}, waiting)
		}

		return session.print(accepted, output.WithID{ID: accepted.Operation, Text: output.Fields{
			{Name: "Dry run of", Value: accepted.Operation},
			{Name: "From", Value: accepted.From},
			{Name: "To", Value: cmp.Or(accepted.To, "the account's version or the default version")},
			{Name: "Components", Value: strings.Join(accepted.Components, ", ")},
			{Name: "Steps", Value: strings.Join(accepted.Steps, ", ")},
		}})
	})

	flags := command.Flags()
	flags.StringVar(&wanted.Version, "version", "", "the version after the upgrade; "+versionHelp)
	flags.BoolVar(&wanted.DryRun, "dry-run", false, "only describe the upgrade")
	addWait(&command, &waiting)

	return &command
}
