package program

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/environment-broker/environment-broker/internal/program/lifecycle"
)

// exitUsage is the conventional exit code for invalid arguments.
const exitUsage = 2

// Program is a command-line program with the configuration type Config. All fields except Flags and Commands are required.
type Program[Config any] struct {
	// Name is the name of the binary.
	Name string
	// About completes the sentence "NAME is …".
	About string
	// Prefix is the prefix of the environment variables.
	Prefix string
	// Defaults is the configuration that applies if no variables are set.
	Defaults Config
	// Flags registers flags in addition to --help and --version. It may be nil.
	Flags func(flags *flag.FlagSet)
	// Run runs the program. SIGINT or SIGTERM ends the context.
	Run func(ctx context.Context, settings Config) error
	// Commands are alternatives to Run: if the first argument is the name of a command, that command runs instead. Commands use
	// the same environment variables.
	Commands []Command[Config]
}

// Command replaces the main task of a program: it runs once and ends. All fields are required.
type Command[Config any] struct {
	Name string
	// About completes the sentence "The command …".
	About string
	// Flags registers the flags of the command.
	Flags func(flags *flag.FlagSet)
	// Run runs the command and writes its result to output. SIGINT or SIGTERM ends the context.
	Run func(ctx context.Context, settings Config, output io.Writer) error
}

// program converts the command to a Program with the prefix and the defaults of the given one. The command writes its result to
// output. Before it starts, it writes a warning for each unknown variable to failures.
func (c Command[Config]) program(of Program[Config], environment []string, output, failures io.Writer) Program[Config] {
	name := of.Name + " " + c.Name

	return Program[Config]{
		Name: name, About: "a command that " + c.About, Prefix: of.Prefix, Defaults: of.Defaults, Flags: c.Flags,
		Run: func(ctx context.Context, settings Config) error {
			for _, warning := range Unknown(of.Prefix, names(of.Prefix, of.Defaults), environment) {
				fmt.Fprintf(failures, "%s: %s\n", name, warning)
			}

			return c.Run(ctx, settings, output)
		},
	}
}

// Main runs the program with the arguments and the environment of the process, and returns the exit code: 0, 1 after an error, or 2 if the
// arguments are invalid.
func (p Program[Config]) Main() int {
	return p.MainWith(os.Args[1:], os.Environ(), os.Stdout, os.Stderr)
}

// MainWith is Main with the given arguments, which exclude the program name, and with the given environment in the form of
// os.Environ. It writes the help and the version to output and errors to failures.
func (p Program[Config]) MainWith(arguments, environment []string, output, failures io.Writer) int {
	for _, command := range p.Commands {
		if len(arguments) > 0 && arguments[0] == command.Name {
			return command.program(p, environment, output, failures).MainWith(arguments[1:], environment, output, failures)
		}
	}

	flags := flag.NewFlagSet(p.Name, flag.ContinueOnError)
	flags.SetOutput(io.Discard) // package flag would print the whole help with each error
	flags.Usage = func() {}
	version := flags.Bool("version", false, "print version and commit, and exit")

	if p.Flags != nil {
		p.Flags(flags)
	}

	err := flags.Parse(arguments)

	switch {
	case errors.Is(err, flag.ErrHelp):
		p.help(flags, output)

		return 0
	case err == nil && flags.NArg() > 0:
		err = fmt.Errorf("unexpected argument %q", flags.Arg(0))
	}

	if err != nil {
		fmt.Fprintf(failures, "%s: %v\nrun %s --help\n", p.Name, err, p.Name)

		return exitUsage
	}

	if *version {
		fmt.Fprintln(output, p.Name, ReadBuild())

		return 0
	}

	return lifecycle.Main(func(ctx context.Context) error {
		settings, err := ReadSettings(p.Prefix, p.Defaults, environment)
		if err != nil {
			return err
		}

		return p.Run(ctx, settings)
	}, failures)
}

// help writes the usage, the flags, and all variables with their defaults and help texts.
func (p Program[Config]) help(flags *flag.FlagSet, output io.Writer) {
	fmt.Fprintf(output, "%s is %s.\n\nUsage: %s [flags]\n\nFlags:\n  --help\n    \tprint this help, and exit\n", p.Name, p.About, p.Name)

	flags.VisitAll(func(each *flag.Flag) {
		value, text := flag.UnquoteUsage(each)
		fmt.Fprintf(output, "  %s\n    \t%s\n", strings.TrimSpace("--"+each.Name+" "+value), text)
	})

	if len(p.Commands) > 0 {
		fmt.Fprint(output, "\nCommands:\n")
	}

	for _, command := range p.Commands {
		fmt.Fprintf(output, "  %s\n    \t%s; see %s %s --help\n", command.Name, command.About, p.Name, command.Name)
	}

	fmt.Fprint(output, "\nEnvironment variables:\n")

	for _, variable := range Variables(p.Prefix, p.Defaults) {
		preset := ""
		if variable.Default != "" {
			preset = " (default " + variable.Default + ")"
		}

		fmt.Fprintf(output, "  %s%s\n    \t%s\n", variable.Name, preset, variable.Help)
	}
}
