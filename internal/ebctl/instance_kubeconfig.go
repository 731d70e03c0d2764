package ebctl

import (
	"fmt"

	"github.com/spf13/cobra"
)

func newInstanceKubeconfigCommand(session *session) *cobra.Command {
	var file string

	command := &cobra.Command{
		Use:   "kubeconfig ID_OR_NAME",
		Short: "Make a short-lived kubeconfig with every right",
		Long: "Make a short-lived kubeconfig with every right in the instance's cluster.\n\n" +
			"The broker records who asked for it. It needs the role admin.",
		Example: "  ebctl instance kubeconfig my-runtime --output-file my-runtime.yaml",
		Args:    arguments("ID_OR_NAME"),
		RunE: func(command *cobra.Command, args []string) error {
			client, runtime, err := session.runtime(command.Context(), args[0])
			if err != nil {
				return err
			}

			made, err := client.AdminKubeconfig(command.Context(), runtime.InstanceID)
			if err != nil {
				return fmt.Errorf("making a kubeconfig for instance %s: %w", runtime.InstanceID, err)
			}

			return session.handOut(made.Kubeconfig, made.ExpiresAt, made, file)
		},
	}

	command.Flags().StringVar(&file, "output-file", "", "the file to write it to, readable by nobody else")

	return command
}
