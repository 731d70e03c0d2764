package ebctl

import (
	"fmt"

	"github.com/pivotal-cf/brokerapi/v10/domain"
	"github.com/spf13/cobra"
)

func newInstanceDeleteCommand(session *session) *cobra.Command {
	var waiting waiting

	command := &cobra.Command{
		Use:   "delete ID_OR_NAME",
		Short: "Remove an instance and its cluster",
		Long: "Remove an instance and its cluster, for good.\n\n" +
			"A creation that is under way is canceled first. The same command may be repeated.",
		Args: arguments("ID_OR_NAME"),
		RunE: func(command *cobra.Command, args []string) error {
			client, runtime, err := session.runtime(command.Context(), args[0])
			if err != nil {
				return err
			}

			accepted, err := client.Deprovision(command.Context(), runtime.InstanceID, domain.DeprovisionDetails{
				ServiceID: runtime.ServiceClassID, PlanID: runtime.ServicePlanID,
			})
			if err != nil {
				return fmt.Errorf("deleting instance %s: %w", runtime.InstanceID, err)
			}

			return session.finish(command.Context(), client, newChange(runtime.InstanceID, accepted), waiting)
		},
	}

	waiting.addFlags(command)

	return command
}
