package ebctl

import (
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"github.com/environment-broker/environment-broker/internal/ebctl/output"
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
			client, err := session.client()
			if err != nil {
				return err
			}

			runtime, err := findRuntime(command.Context(), client, args[0])
			if err != nil {
				return err
			}

			made, err := client.AdminKubeconfig(command.Context(), runtime.InstanceID)
			if err != nil {
				return fmt.Errorf("making a kubeconfig for instance %s: %w", runtime.InstanceID, err)
			}

			if file == "" {
				return session.print(made, output.Plain(made.Kubeconfig))
			}

			if err := writePrivate(file, made.Kubeconfig); err != nil {
				return err
			}

			fmt.Fprintf(session.Err, "Written to %s", file)

			if made.ExpiresAt != nil {
				fmt.Fprintf(session.Err, ", valid until %s", output.Time(*made.ExpiresAt))
			}

			fmt.Fprintln(session.Err)

			return nil
		},
	}

	command.Flags().StringVar(&file, "output-file", "", "the file to write it to, readable by nobody else")

	return command
}

// writePrivate writes a file that only its owner can read, also where it existed with other rights.
func writePrivate(path, content string) error {
	const private = 0o600

	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, private)
	if err != nil {
		return fmt.Errorf("writing the kubeconfig: %w", err)
	}
	defer file.Close()

	if err := file.Chmod(private); err != nil {
		return fmt.Errorf("writing the kubeconfig: %w", err)
	}

	if _, err := file.WriteString(content); err != nil {
		return fmt.Errorf("writing the kubeconfig: %w", err)
	}

	if err := file.Close(); err != nil {
		return fmt.Errorf("writing the kubeconfig: %w", err)
	}

	return nil
}
