package ebctl

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/environment-broker/environment-broker/internal/ebctl/brokerclient"
	"github.com/environment-broker/environment-broker/internal/ebctl/output"
	"github.com/environment-broker/environment-broker/internal/operatorapi"
)

func newInstanceProtectCommand(session *session) *cobra.Command {
	return newProtectionCommand(session, (*brokerclient.Client).ProtectInstance, cobra.Command{
		Use:   "protect ID_OR_NAME",
		Short: "Protect an instance from deletion",
		Long: "Protect an instance from deletion.\n\nThe broker then rejects deletion requests from platforms, unless the creation of the instance has " +
			"failed. The cluster is still removed by a suspension or at the end of a trial. The command needs the operator role. The audit log records your " +
			"name and the reason.",
	})
}

func newInstanceUnprotectCommand(session *session) *cobra.Command {
	return newProtectionCommand(session, (*brokerclient.Client).UnprotectInstance, cobra.Command{
		Use:   "unprotect ID_OR_NAME",
		Short: "Lift the deletion protection of an instance",
		Long: "Lift the deletion protection of an instance, so that platforms can delete it.\n\nThe command itself does not delete anything. It needs the operator " +
			"role. The audit log records your name and the reason.",
	})
}

// newProtectionCommand turns a command into one that changes the deletion protection of an instance.
func newProtectionCommand(session *session,
	send func(client *brokerclient.Client, ctx context.Context, instanceID string, body operatorapi.Justification) (operatorapi.InstanceProtection, error),
	command cobra.Command,
) *cobra.Command {
	var reason string

	completed := session.onInstance(&command, func(ctx context.Context, instance target, _ []string) error {
		changed, err := send(instance.Client, ctx, instance.InstanceID, operatorapi.Justification{Reason: reason})
		if err != nil {
			return fmt.Errorf("changing the deletion protection of instance %s: %w", instance.InstanceID, err)
		}

		return session.print(changed, output.WithID{ID: changed.InstanceID, Text: output.Fields{
			{Name: "Instance", Value: changed.InstanceID},
			{Name: "Deletion protection", Value: onOrOff(changed.DeletionProtection)},
		}})
	})
	addReason(completed, &reason, nil, "the audit log")

	return completed
}

func onOrOff(on bool) string {
	if on {
		return "on"
	}

	return "off"
}

// newInstanceLabelCommand returns the command that changes the labels of an instance. Its arguments have the syntax of kubectl
// label.
func newInstanceLabelCommand(session *session) *cobra.Command {
	command := session.onInstance(&cobra.Command{
		Use:   "label ID_OR_NAME NAME=VALUE|NAME-...",
		Short: "Set and remove labels of an instance",
		Long: "Set and remove labels of an instance: NAME=VALUE sets a label, NAME- removes one.\n\nLabels group instances for 'ebctl instance list " +
			"--label' and for orchestrations. They do not affect the cluster. The command needs the operator role.",
		Example: "  ebctl instance label my-cluster ring=canary team-",
	}, func(ctx context.Context, instance target, args []string) error {
		change, err := readLabels(args[1:])
		if err != nil {
			return err
		}

		labels, err := instance.LabelInstance(ctx, instance.InstanceID, change)
		if err != nil {
			return fmt.Errorf("changing the labels of instance %s: %w", instance.InstanceID, err)
		}

		return session.print(labels, output.WithID{ID: labels.InstanceID, Text: output.Fields{
			{Name: "Instance", Value: labels.InstanceID},
			{Name: "Labels", Value: shownLabels(labels.Labels)},
		}})
	})

	command.Args = atLeast(strings.Fields(command.Use)[1:]...)

	return command
}

func newInstanceUpgradeTimeCommand(session *session) *cobra.Command {
	command := session.onInstance(&cobra.Command{
		Use:   "upgrade-time ID_OR_NAME TIME",
		Short: "Choose when an upgrade with a deadline starts",
		Long: "Choose when the upgrade of an instance starts.\n\nThe orchestration of the upgrade must have a deadline, and the time must be in the future and before " +
			"this deadline. The upgrade then ignores maintenance windows. It starts later if its wave or the limits of the orchestration require it. Tenants can " +
			"choose the time with the upgradeTime parameter of an update. The command needs the operator role. The audit log records your name.",
		Example: "  ebctl instance upgrade-time my-cluster 2030-01-02T22:00:00Z",
	}, func(ctx context.Context, instance target, args []string) error {
		at, err := time.Parse(time.RFC3339, args[1])
		if err != nil {
			return usage("%q is not a time; use the form 2030-01-02T22:00:00Z", args[1])
		}

		chosen, err := instance.ChooseUpgradeTime(ctx, instance.InstanceID, operatorapi.UpgradeTime{Time: at})
		if err != nil {
			return fmt.Errorf("choosing the time of the upgrade of instance %s: %w", instance.InstanceID, err)
		}

		return session.print(chosen, output.WithID{ID: instance.InstanceID, Text: output.Fields{
			{Name: "Instance", Value: instance.InstanceID},
			{Name: "Upgrade", Value: output.Time(chosen.Time)},
		}})
	})

	command.Args = arguments(strings.Fields(command.Use)[1:]...)

	return command
}

// readLabels parses arguments of the forms NAME=VALUE and NAME-.
func readLabels(args []string) (operatorapi.LabelChange, error) {
	change := operatorapi.LabelChange{Set: map[string]string{}}

	for _, arg := range args {
		name, value, set := strings.Cut(arg, "=")
		removed, remove := strings.CutSuffix(arg, "-")

		switch {
		case set:
			change.Set[name] = value
		case remove:
			change.Remove = append(change.Remove, removed)
		default:
			return change, usage("%q is neither NAME=VALUE nor NAME-", arg)
		}
	}

	return change, nil
}

// shownLabels returns the labels as NAME=VALUE, separated by commas and sorted by name.
func shownLabels(labels map[string]string) string {
	var all []string
	for _, name := range slices.Sorted(maps.Keys(labels)) {
		all = append(all, name+"="+labels[name])
	}

	return strings.Join(all, ",")
}
