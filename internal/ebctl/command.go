package ebctl

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
)

// group is a command that only holds others.
func group(use, short string, commands ...*cobra.Command) *cobra.Command {
	group := &cobra.Command{Use: use, Short: short, Args: noCommand, RunE: help}
	group.AddCommand(commands...)

	return group
}

func help(command *cobra.Command, _ []string) error { return command.Help() }

// noCommand refuses what stands where a command should.
func noCommand(command *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}

	text := fmt.Sprintf("%q is no command of %s", args[0], command.CommandPath())

	// cobra leaves the distance to be set by whoever asks for suggestions.
	const distance = 2
	command.SuggestionsMinimumDistance = distance

	if near := command.SuggestionsFor(args[0]); len(near) > 0 {
		text += "; did you mean " + strings.Join(near, " or ") + "?"
	}

	return &usageError{cause: errors.New(text)}
}

// arguments insists on exactly the arguments that are named.
func arguments(names ...string) cobra.PositionalArgs {
	return func(_ *cobra.Command, args []string) error {
		switch {
		case len(args) < len(names):
			return usage("%s is missing", names[len(args)])
		case len(args) > len(names):
			return usage("%q is one argument too many", args[len(names)])
		default:
			return nil
		}
	}
}

// complete has shells offer the values for the flag.
func complete(command *cobra.Command, flag string, values ...string) {
	completeBy(command, flag, cobra.FixedCompletions(values, cobra.ShellCompDirectiveNoFileComp))
}

// completeBy has shells offer what the function finds for the flag.
func completeBy(command *cobra.Command, flag string, find cobra.CompletionFunc) {
	if err := command.RegisterFlagCompletionFunc(flag, find); err != nil {
		panic(err) // There is no such flag: not a single command would run, nor a test pass.
	}
}
