package ebctl

import (
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/environment-broker/environment-broker/internal/ebctl/brokerclient"
	"github.com/environment-broker/environment-broker/internal/ebctl/output"
	"github.com/environment-broker/environment-broker/internal/operatorapi"
)

// bindingArguments name a binding.
func bindingArguments() cobra.PositionalArgs { return arguments("INSTANCE", "BINDING") }

func newBindingCreateCommand(session *session) *cobra.Command {
	var (
		order    brokerclient.BindingOrder
		lifetime time.Duration
		id, file string
	)

	command := &cobra.Command{
		Use:   "create INSTANCE",
		Short: "Make access to the cluster for a while",
		Long: "Make access to the cluster for a while, by an account of its own.\n\n" +
			"INSTANCE is an id or a name. The same command with the same --id may be repeated.",
		Example: "  ebctl binding create my-runtime --role edit --expires-in 1h --output-file my-runtime.yaml\n" +
			"  ebctl binding create my-runtime --rotate FORMER_BINDING",
		Args: arguments("INSTANCE"),
		RunE: func(command *cobra.Command, args []string) error {
			if lifetime%time.Second != 0 {
				return usage("--expires-in has to be whole seconds")
			}

			order.Parameters.ExpirationSeconds = int(lifetime / time.Second)

			client, runtime, err := session.runtime(command.Context(), args[0])
			if err != nil {
				return err
			}

			if id == "" {
				id = session.NewID()
				fmt.Fprintf(session.Err, "Binding %s\n", id)
			}

			order.ServiceID, order.PlanID = runtime.ServiceClassID, runtime.ServicePlanID

			made, err := client.Bind(command.Context(), runtime.InstanceID, id, order)
			if err != nil {
				return fmt.Errorf("making binding %s of instance %s: %w", id, runtime.InstanceID, err)
			}

			return session.handOut(made.Credentials.Kubeconfig, &made.Metadata.ExpiresAt, made, file)
		},
	}

	flags := command.Flags()
	flags.StringVar(&id, "id", "", "the id of the binding, else a new one")
	flags.StringVar(&order.Parameters.Role, "role", "", "what it allows: admin (by default), edit or view")
	flags.DurationVar(&lifetime, "expires-in", 0, "how long it is good for, 10m (by default) to 2h")
	flags.StringVar(&order.Predecessor, "rotate", "", "the binding that it replaces, whose role and lifetime it gets")
	flags.StringVar(&file, "output-file", "", "the file to write the kubeconfig to, readable by nobody else")
	complete(command, "role", "admin", "edit", "view")

	return command
}

func newBindingGetCommand(session *session) *cobra.Command {
	var file string

	command := &cobra.Command{
		Use:   "get INSTANCE BINDING",
		Short: "Get the kubeconfig of a binding again",
		Args:  bindingArguments(),
		RunE: func(command *cobra.Command, args []string) error {
			client, runtime, err := session.runtime(command.Context(), args[0])
			if err != nil {
				return err
			}

			found, err := client.Binding(command.Context(), runtime.InstanceID, args[1])
			if err != nil {
				return fmt.Errorf("fetching binding %s of instance %s: %w", args[1], runtime.InstanceID, err)
			}

			return session.handOut(found.Credentials.Kubeconfig, &found.Metadata.ExpiresAt, found, file)
		},
	}

	command.Flags().StringVar(&file, "output-file", "", "the file to write it to, readable by nobody else")

	return command
}

func newBindingListCommand(session *session) *cobra.Command {
	return &cobra.Command{
		Use:   "list INSTANCE",
		Short: "List the bindings of an instance, the newest first",
		Long:  "List the bindings of an instance, the newest first, without their credentials. It needs the role viewer.",
		Args:  arguments("INSTANCE"),
		RunE: func(command *cobra.Command, args []string) error {
			client, runtime, err := session.runtime(command.Context(), args[0])
			if err != nil {
				return err
			}

			list, err := client.Bindings(command.Context(), runtime.InstanceID)
			if err != nil {
				return fmt.Errorf("listing the bindings of instance %s: %w", runtime.InstanceID, err)
			}

			return session.print(list, bindingsText(list))
		},
	}
}

func bindingsText(list operatorapi.BindingList) output.Text {
	rows := output.Rows{
		Head: []string{"BINDING", "STATE", "ROLE", "EXPIRES", "CREATED BY", "OPERATION"},
		None: "The instance has no bindings.",
	}

	for _, binding := range list.Data {
		rows.Rows = append(rows.Rows, []string{
			binding.BindingID, binding.State, binding.Role, output.Time(binding.ExpiresAt), binding.CreatedBy, binding.OperationID,
		})
	}

	return rows
}

func newBindingDeleteCommand(session *session) *cobra.Command {
	return &cobra.Command{
		Use:   "delete INSTANCE BINDING",
		Short: "Take access to the cluster away",
		Long: "Take access to the cluster away. The cluster refuses its credentials within 15 seconds.\n\n" +
			"The same command may be repeated.",
		Args: bindingArguments(),
		RunE: func(command *cobra.Command, args []string) error {
			client, runtime, err := session.runtime(command.Context(), args[0])
			if err != nil {
				return err
			}

			if err := client.Unbind(command.Context(), runtime.InstanceID, args[1], runtime.ServiceClassID, runtime.ServicePlanID); err != nil {
				return fmt.Errorf("removing binding %s of instance %s: %w", args[1], runtime.InstanceID, err)
			}

			fmt.Fprintf(session.Err, "Binding %s is removed\n", args[1])

			return nil
		},
	}
}
