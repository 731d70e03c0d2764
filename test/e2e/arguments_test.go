package e2e

import (
	"os/exec"
	"strings"
	"testing"

	"github.com/environment-broker/environment-broker/test/harness"
)

// TestHelpAndVersionNeedNoConfiguration checks the output of --help and --version in an empty environment, as after a new
// installation.
func TestHelpAndVersionNeedNoConfiguration(t *testing.T) {
	t.Parallel()

	for name, variable := range map[string]string{
		"broker": "APP_PROVISIONER_URL", "provisioner": "APP_GARDENER_PROJECT", "sandbox": "SANDBOX_CLUSTER_CREATION",
	} {
		path := harness.Build(t, name)

		for argument, want := range map[string][]string{
			"--help":    {"Usage: " + name, "  --version", variable},
			"--version": {name + " ", " (commit ", ", go1."},
		} {
			command := exec.CommandContext(t.Context(), path, argument)
			command.Env, command.Dir = []string{}, t.TempDir()

			output, err := command.CombinedOutput()
			if err != nil {
				t.Errorf("%s %s: %v\n%s", name, argument, err, output)
			}

			for _, text := range want {
				if !strings.Contains(string(output), text) {
					t.Errorf("%s %s: want %q in\n%s", name, argument, text, output)
				}
			}
		}
	}
}
