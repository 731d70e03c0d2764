package ebctl

import (
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

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
