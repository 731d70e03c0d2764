package ebctl

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/environment-broker/environment-broker/internal/ebctl/brokerclient"
	"github.com/environment-broker/environment-broker/internal/ebctl/output"
)

// newBindingCreateCommand returns the command that creates a binding and prints its kubeconfig. Without --id, the command
// generates the ID of the binding and prints it to standard error. If the outcome of the request is unknown, the error contains
// the ID: a user who repeats the command with --id gets the same binding.
func newBindingCreateCommand(session *session) *cobra.Command {
	var (
		order    brokerclient.BindingOrder
		lifetime time.Duration
		id, file string
	)

	command := session.onInstance(&cobra.Command{
		Use:   "create INSTANCE",
		Short: "Create a binding and print its temporary kubeconfig",
		Long: "Create a binding and print its temporary kubeconfig, which belongs to a separate ServiceAccount in the cluster.\n\n" +
			"INSTANCE is an ID or a name. With --id, the command is idempotent.",
		Example: "  ebctl binding create my-runtime --role edit --expires-in 1h --output-file my-runtime.yaml\n" +
			"  ebctl binding create my-runtime --rotate OLD_BINDING_ID",
		PreRunE: func(*cobra.Command, []string) error {
			if lifetime < 0 || lifetime%time.Second != 0 {
				return usage("--expires-in must be a positive duration in whole seconds")
			}

			return nil
		},
	}, func(ctx context.Context, instance target, _ []string) error {
		given := id
		id := cmp.Or(given, session.NewID())

		order.ServiceID, order.PlanID = instance.ServiceClassID, instance.ServicePlanID
		order.Parameters.ExpirationSeconds = int(lifetime / time.Second)

		made, err := instance.Bind(ctx, instance.InstanceID, id, order)
		if err != nil {
			return bindingError(err, id, instance.InstanceID, lifetime)
		}

		if given == "" {
			fmt.Fprintf(session.Err, "Binding %s\n", id)
		}

		return session.printKubeconfig(id, made.Credentials.Kubeconfig, made.Metadata.ExpiresAt, made, file)
	})

	flags := command.Flags()
	flags.StringVar(&id, "id", "", "the binding's ID (default: a new UUID)")
	flags.StringVar(&order.Parameters.Role, "role", "", "the role of the binding: admin (default), edit or view")
	flags.DurationVar(&lifetime, "expires-in", 0, "the lifetime of the binding, 10m (default) to 2h")
	flags.StringVar(&order.Predecessor, "rotate", "", "the ID of the binding to replace; the new binding has the same role and lifetime, so omit --role and --expires-in")
	addOutputFile(command, &file)
	complete(command, "role", "admin", "edit", "view")

	return command
}

// bindingError adds the information that a user needs to correct or repeat a failed request: the flag whose value the broker
// rejected, or the ID of the binding if the outcome is unknown.
func bindingError(err error, id, instanceID string, lifetime time.Duration) error {
	answer, responded := errors.AsType[*brokerclient.AnswerError](err)
	if responded && answer.Status == http.StatusBadRequest && strings.Contains(answer.Description, "expiration_seconds") {
		return usage("--expires-in %s is out of bounds: %w", lifetime, err)
	}

	// A creation that takes too long gets 503, and continues.
	if is[*brokerclient.UnreachableError](err) || responded && answer.Temporary() {
		return fmt.Errorf("the binding may have been created; repeat the command with --id %s: %w", id, err)
	}

	return fmt.Errorf("creating binding %s of instance %s: %w", id, instanceID, err)
}

// newBindingGetCommand returns the command that prints the kubeconfig of a binding. The broker stored the kubeconfig when it
// created the binding; the command creates no new credentials.
func newBindingGetCommand(session *session) *cobra.Command {
	var file string

	command := session.onInstance(&cobra.Command{
		Use:   "get INSTANCE BINDING",
		Short: "Print the kubeconfig of a binding",
	}, func(ctx context.Context, instance target, args []string) error {
		found, err := instance.Binding(ctx, instance.InstanceID, args[1])
		if err != nil {
			return fmt.Errorf("reading binding %s of instance %s: %w", args[1], instance.InstanceID, err)
		}

		return session.printKubeconfig(args[1], found.Credentials.Kubeconfig, found.Metadata.ExpiresAt, found, file)
	})

	addOutputFile(command, &file)

	return command
}

// newBindingListCommand returns the command that lists bindings. It calls the operator API, because the Open Service Broker API
// cannot list bindings.
func newBindingListCommand(session *session) *cobra.Command {
	return session.onInstance(&cobra.Command{
		Use:   "list INSTANCE",
		Short: "List the bindings of an instance, newest first",
		Long:  "List the bindings of an instance without their credentials, newest first. The command needs the viewer role.",
	}, func(ctx context.Context, instance target, _ []string) error {
		list, err := instance.ListBindings(ctx, instance.InstanceID)
		if err != nil {
			return fmt.Errorf("listing the bindings of instance %s: %w", instance.InstanceID, err)
		}

		rows := output.Rows{
			Head: []string{"BINDING", headState, "ROLE", "EXPIRES", "CREATED BY", "OPERATION"},
			None: "The instance has no bindings.", IDs: []string{},
		}

		for _, binding := range list.Data {
			rows.Add(binding.BindingID,
				binding.BindingID, binding.State, binding.Role, output.Time(binding.ExpiresAt), binding.CreatedBy, binding.OperationID)
		}

		return session.print(list, rows)
	})
}

// newBindingDeleteCommand returns the command that deletes a binding. The broker responds after it has deleted the ServiceAccount
// in the cluster, so there is no operation to follow.
func newBindingDeleteCommand(session *session) *cobra.Command {
	return addYes(session, session.onInstance(&cobra.Command{
		Use:   "delete INSTANCE BINDING",
		Short: "Delete a binding and revoke its access to the cluster",
		Long: "Delete a binding and revoke its access to the cluster. The cluster rejects the credentials within 15 seconds.\n\n" +
			"The command is idempotent.",
	}, func(ctx context.Context, instance target, args []string) error {
		if err := session.confirm(ctx, "Revoke binding %s of instance %s?", args[1], described(instance)); err != nil {
			return err
		}

		if err := instance.Unbind(ctx, instance.InstanceID, args[1], instance.ServiceClassID, instance.ServicePlanID); err != nil {
			return fmt.Errorf("deleting binding %s of instance %s: %w", args[1], instance.InstanceID, err)
		}

		fmt.Fprintf(session.Err, "Binding %s deleted\n", args[1])

		return nil
	}))
}
