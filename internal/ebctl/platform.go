package ebctl

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/environment-broker/environment-broker/internal/ebctl/brokerclient"
	"github.com/environment-broker/environment-broker/internal/ebctl/output"
	"github.com/environment-broker/environment-broker/internal/operatorapi"
)

// helpPlatforms is the last paragraph in the help texts of the commands that change the platforms of an instance.
const helpPlatforms = "\n\nThe command needs the admin role. The audit log records your name and the reason."

func newPlatformCommand(session *session) *cobra.Command {
	return group("platform", "Show the platforms, and share and move instances between them",
		newPlatformListCommand(session),
		newPlatformGrantCommand(session),
		newPlatformRevokeCommand(session),
		newPlatformMoveCommand(session),
	)
}

func newPlatformListCommand(session *session) *cobra.Command {
	return &cobra.Command{
		Use:   listCommand,
		Short: "List the configured platforms with their credentials, regions and tenants",
		Long: "List the configured platforms with their credentials, regions and tenants. An empty column means no limit. " +
			"The command needs the admin role.",
		Args: arguments(),
		RunE: session.withClient(func(ctx context.Context, client *brokerclient.Client, _ []string) error {
			list, err := client.ListPlatforms(ctx)
			if err != nil {
				return fmt.Errorf("listing the platforms: %w", err)
			}

			table := output.Rows{Head: []string{"NAME", "USERS", "CLAIMS", "CERTIFICATES", "REGIONS", "TENANTS"}, IDs: []string{}}

			for _, platform := range list.Data {
				table.Add(platform.Name,
					platform.Name, strings.Join(platform.Users, ","), pairs(platform.Claims), pairs(platform.Certificates),
					strings.Join(platform.Regions, ","), strings.Join(platform.Tenants, ","))
			}

			return session.print(list, table)
		}),
	}
}

// pairs returns the values as name:value, separated by commas and sorted by name.
func pairs(values map[string][]string) string {
	var all []string

	for _, name := range slices.Sorted(maps.Keys(values)) {
		for _, value := range values[name] {
			all = append(all, name+":"+value)
		}
	}

	return strings.Join(all, ",")
}

func newPlatformGrantCommand(session *session) *cobra.Command {
	return newPlatformChangeCommand(session, "grant", (*brokerclient.Client).GrantPlatform, cobra.Command{
		Short: "Share an instance with a platform",
		Long: "Share an instance with a platform.\n\nThe platform can then update, bind and delete the instance, just as the owner can. " +
			"The platform cannot move the instance to another account." + helpPlatforms,
	})
}

func newPlatformRevokeCommand(session *session) *cobra.Command {
	return newPlatformChangeCommand(session, "revoke", (*brokerclient.Client).RevokePlatform, cobra.Command{
		Short: "Stop sharing an instance with a platform",
		Long: "Stop sharing an instance with a platform.\n\nBindings that the platform created remain until they expire. " +
			"'ebctl binding delete' removes them." + helpPlatforms,
	})
}

func newPlatformMoveCommand(session *session) *cobra.Command {
	return newPlatformChangeCommand(session, "move", (*brokerclient.Client).MovePlatform, cobra.Command{
		Short: "Make a platform the owner of an instance",
		Long: "Make a platform the owner of an instance.\n\nThe previous owner loses access to the instance. The bindings that the previous owner created remain until they expire." +
			helpPlatforms,
	})
}

// newPlatformChangeCommand turns a command into one that changes the platforms of an instance.
func newPlatformChangeCommand(session *session, verb string,
	send func(client *brokerclient.Client, ctx context.Context, instanceID string, body operatorapi.PlatformChange) (operatorapi.InstancePlatforms, error),
	command cobra.Command,
) *cobra.Command {
	var reason string

	command.Use = verb + " ID_OR_NAME PLATFORM"
	completed := session.onInstance(&command, func(ctx context.Context, instance target, args []string) error {
		changed, err := send(instance.Client, ctx, instance.InstanceID, operatorapi.PlatformChange{Platform: args[1], Reason: reason})
		if err != nil {
			return fmt.Errorf("changing the platforms of instance %s: %w", instance.InstanceID, err)
		}

		return session.print(changed, output.WithID{ID: changed.InstanceID, Text: output.Fields{
			{Name: "Instance", Value: changed.InstanceID},
			{Name: "Platform", Value: changed.Platform},
			{Name: "Shared with", Value: strings.Join(changed.SharedWith, ", ")},
		}})
	})
	addReason(completed, &reason, nil, "the audit log")

	return completed
}
