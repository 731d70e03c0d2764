package ebctl

import (
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"

	"github.com/environment-broker/environment-broker/provisioner/operation"
)

// TestKindsOfTheProvisioner compares provisionerKinds with the kinds of the Provisioner, whose packages ebctl does not import.
func TestKindsOfTheProvisioner(t *testing.T) {
	listed, want := provisionerKinds(), operation.Kinds()
	slices.Sort(listed)
	slices.Sort(want)

	if diff := cmp.Diff(want, listed); diff != "" {
		t.Errorf("provisionerKinds differs from operation.Kinds: -Provisioner +ebctl\n%s", diff)
	}
}

// TestHelpNamesItsArguments checks that the help of a command explains only arguments that the command has.
func TestHelpNamesItsArguments(t *testing.T) {
	var check func(command *cobra.Command)

	checked := 0
	check = func(command *cobra.Command) {
		if named := "ID_OR_NAME"; strings.Contains(command.Long, named) {
			if checked++; !strings.Contains(command.Use, named) {
				t.Errorf("%s: the help explains %s", command.CommandPath(), named)
			}
		}

		for _, child := range command.Commands() {
			check(child)
		}
	}

	check(newRootCommand(&session{globals: &globals{}}))

	if checked == 0 {
		t.Error("no help explains its arguments")
	}
}

// TestDocumentedConfirmations checks that docs/operator/ebctl.md lists the commands that ask for confirmation.
func TestDocumentedConfirmations(t *testing.T) {
	page, err := os.ReadFile("../../docs/operator/ebctl.md")
	if err != nil {
		t.Fatal(err)
	}

	_, list, _ := strings.Cut(string(page), "## Confirmation\n")
	list, _, _ = strings.Cut(list, "\n## ")

	var check func(command *cobra.Command)

	check = func(command *cobra.Command) {
		if path := strings.TrimPrefix(command.CommandPath(), "ebctl "); command.Flags().Lookup("yes") != nil && !strings.HasPrefix(path, "provisioner ") &&
			!strings.Contains(list, "`"+path+"`") && !strings.HasPrefix(path, "orchestration start ") {
			t.Errorf("the page does not list %s", path)
		}

		for _, child := range command.Commands() {
			check(child)
		}
	}

	check(newRootCommand(&session{globals: &globals{}}))
}
