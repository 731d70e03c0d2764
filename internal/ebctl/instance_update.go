package ebctl

import (
	"encoding/json"
	"fmt"

	"github.com/pivotal-cf/brokerapi/v10/domain"
	"github.com/spf13/cobra"

	"github.com/environment-broker/environment-broker/internal/ebctl/brokerclient"
	"github.com/environment-broker/environment-broker/internal/operatorapi"
)

// alteration is what the flags of 'instance update' say.
type alteration struct {
	plan        string
	parameters  string
	maintenance bool
	waiting     waiting
}

func newInstanceUpdateCommand(session *session) *cobra.Command {
	var wanted alteration

	command := &cobra.Command{
		Use:   "update ID_OR_NAME",
		Short: "Change an instance",
		Long: "Change the parameters or the plan of an instance, or have it maintained.\n\n" +
			"What is not named stays as it is. The same command may be repeated.",
		Example: `  ebctl instance update my-runtime --parameters '{"autoScalerMax": 10}' --wait` + "\n" +
			"  ebctl instance update my-runtime --maintenance",
		Args: arguments("ID_OR_NAME"),
		RunE: func(command *cobra.Command, args []string) error { return session.alter(command, args[0], wanted) },
	}

	flags := command.Flags()
	flags.StringVar(&wanted.plan, "plan", "", "another plan, by its name or id")
	flags.StringVar(&wanted.parameters, "parameters", "", "parameters to change as a JSON object, @FILE or @- for standard input")
	flags.BoolVar(&wanted.maintenance, "maintenance", false, "bring it to the version of its plan in the catalog")
	wanted.waiting.addFlags(command)
	completeBy(command, "plan", session.completePlan)

	return command
}

func (s *session) alter(command *cobra.Command, idOrName string, wanted alteration) error {
	if wanted.plan == "" && wanted.parameters == "" && !wanted.maintenance {
		return usage("one of --plan, --parameters and --maintenance is needed")
	}

	parameters, err := readParameters(s.In, wanted.parameters, "")
	if err != nil {
		return err
	}

	client, runtime, err := s.runtime(command.Context(), idOrName)
	if err != nil {
		return err
	}

	update := brokerclient.Update{ServiceID: runtime.ServiceClassID, Parameters: parameters}
	plan := runtime.ServicePlanID

	if wanted.plan != "" {
		plan = wanted.plan
	}

	if wanted.plan != "" || wanted.maintenance {
		offer, err := findPlan(command.Context(), client, runtime.SubAccountRegion, plan)
		if err != nil {
			return err
		}

		update.PlanID = offer.plan.ID
		if wanted.maintenance && offer.plan.MaintenanceInfo != nil {
			update.MaintenanceInfo = &domain.MaintenanceInfo{Version: offer.plan.MaintenanceInfo.Version}
		}
	}

	return s.update(command, client, runtime, update, wanted.waiting)
}

// update sends the update and, if that is wanted, waits for what comes of it.
func (s *session) update(command *cobra.Command, client *brokerclient.Client, runtime operatorapi.Runtime, update brokerclient.Update,
	waiting waiting,
) error {
	accepted, err := client.Update(command.Context(), runtime.InstanceID, update)
	if err != nil {
		return fmt.Errorf("updating instance %s: %w", runtime.InstanceID, err)
	}

	return s.finish(command.Context(), client, newChange(runtime.InstanceID, accepted), waiting)
}

func newInstanceSuspendCommand(session *session) *cobra.Command {
	return newActiveCommand(session, false, &cobra.Command{
		Use:   "suspend ID_OR_NAME",
		Short: "Remove the cluster of an instance and keep the instance",
		Long: "Remove the cluster of an instance, with all that is in it, and keep the instance.\n\n" +
			"Only instances of plans that do not promise to last can be suspended.",
	})
}

func newInstanceResumeCommand(session *session) *cobra.Command {
	return newActiveCommand(session, true, &cobra.Command{
		Use:   "resume ID_OR_NAME",
		Short: "Make the cluster of a suspended instance anew",
		Long:  "Make the cluster of a suspended instance anew, empty. An instance that has expired is never resumed.",
	})
}

// newActiveCommand completes a command that says whether an instance is to have a cluster.
func newActiveCommand(session *session, active bool, command *cobra.Command) *cobra.Command {
	var waiting waiting

	command.Args = arguments("ID_OR_NAME")
	command.RunE = func(command *cobra.Command, args []string) error {
		client, runtime, err := session.runtime(command.Context(), args[0])
		if err != nil {
			return err
		}

		return session.update(command, client, runtime, brokerclient.Update{
			ServiceID: runtime.ServiceClassID, Context: json.RawMessage(fmt.Sprintf(`{"active":%t}`, active)),
		}, waiting)
	}

	waiting.addFlags(command)

	return command
}

func newInstanceExpireCommand(session *session) *cobra.Command {
	var waiting waiting

	command := &cobra.Command{
		Use:   "expire ID_OR_NAME",
		Short: "Have an instance expire: remove its cluster for good",
		Long: "Remove the cluster of an instance for good. The instance stays and can only be deleted.\n\n" +
			"It needs the role operator, and a plan that does not promise to last.",
		Args: arguments("ID_OR_NAME"),
		RunE: func(command *cobra.Command, args []string) error {
			client, runtime, err := session.runtime(command.Context(), args[0])
			if err != nil {
				return err
			}

			accepted, err := client.Expire(command.Context(), runtime.InstanceID)
			if err != nil {
				return fmt.Errorf("having instance %s expire: %w", runtime.InstanceID, err)
			}

			return session.finish(command.Context(), client, newChange(runtime.InstanceID, accepted), waiting)
		},
	}

	waiting.addFlags(command)

	return command
}
