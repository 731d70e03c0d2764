package ebctl

import (
	"context"
	"fmt"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/environment-broker/environment-broker/internal/ebctl/output"
)

// newInstanceKubeconfigCommand returns the command that requests an admin kubeconfig. Each time it runs, the broker creates new
// credentials and an entry in the audit log.
func newInstanceKubeconfigCommand(session *session) *cobra.Command {
	var file string

	command := session.onInstance(&cobra.Command{
		Use:   "kubeconfig ID_OR_NAME",
		Short: "Create a short-lived kubeconfig with cluster-admin rights",
		Long: "Create a short-lived kubeconfig with cluster-admin rights in the instance's cluster.\n\n" +
			"The command needs the admin role. The audit log records the user.",
		Example: "  ebctl instance kubeconfig my-runtime --output-file my-runtime.yaml",
	}, func(ctx context.Context, instance target, _ []string) error {
		made, err := instance.CreateAdminKubeconfig(ctx, instance.InstanceID)
		if err != nil {
			return fmt.Errorf("creating a kubeconfig for instance %s: %w", instance.InstanceID, err)
		}

		return session.printKubeconfig(instance.InstanceID, made.Kubeconfig, made.ExpiresAt, made, file)
	})

	addOutputFile(command, &file)

	return command
}

// addOutputFile adds the --output-file flag to a command that prints a kubeconfig.
func addOutputFile(command *cobra.Command, file *string) {
	command.Flags().StringVar(file, "output-file", "", "write the kubeconfig to this file, readable only by its owner")
}

// printKubeconfig writes the kubeconfig to the named file. It then prints the path of the file to standard error and, unless
// expiresAt is zero, the expiry. If file is empty, it prints to standard output instead: in the formats for people, it prints the
// kubeconfig itself; in the formats for scripts, it prints value, which contains the kubeconfig. With -o name, it prints id.
func (s *session) printKubeconfig(id, kubeconfig string, expiresAt time.Time, value any, file string) error {
	if file == "" {
		return s.print(value, output.WithID{ID: id, Text: output.Plain(kubeconfig)})
	}

	if err := writePrivate(file, kubeconfig); err != nil {
		return fmt.Errorf("writing the kubeconfig: %w", err)
	}

	fmt.Fprintf(s.Err, "Kubeconfig written to %s", file)

	if !expiresAt.IsZero() {
		fmt.Fprintf(s.Err, ", valid until %s", output.Time(expiresAt))
	}

	fmt.Fprintln(s.Err)

	return nil
}

// writePrivate writes a file that only its owner can read. It calls Chmod before it writes, because opening an existing file does
// not change the mode of the file.
func writePrivate(path, content string) error {
	const private = 0o600

	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, private)
	if err != nil {
		return err
	}
	defer file.Close()

	if err := file.Chmod(private); err != nil {
		return err
	}

	if _, err := file.WriteString(content); err != nil {
		return err
	}

	return file.Close()
}
