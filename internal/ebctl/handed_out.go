package ebctl

import (
	"fmt"
	"os"
	"time"

	"github.com/environment-broker/environment-broker/internal/ebctl/output"
)

// handOut prints a kubeconfig, or writes it to the file and tells until when it is good. In other formats it prints the value.
func (s *session) handOut(kubeconfig string, expiresAt *time.Time, value any, file string) error {
	if file == "" {
		return s.print(value, output.Plain(kubeconfig))
	}

	if err := writePrivate(file, kubeconfig); err != nil {
		return err
	}

	fmt.Fprintf(s.Err, "Written to %s", file)

	if expiresAt != nil {
		fmt.Fprintf(s.Err, ", valid until %s", output.Time(*expiresAt))
	}

	fmt.Fprintln(s.Err)

	return nil
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
