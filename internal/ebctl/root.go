package ebctl

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/environment-broker/environment-broker/internal/ebctl/brokerclient"
	"github.com/environment-broker/environment-broker/internal/ebctl/output"
	"github.com/environment-broker/environment-broker/internal/failure"
)

const rootHelp = `ebctl creates, shows and deletes service instances, and follows their operations. 'ebctl provisioner' shows the runtimes and
the operations of the Provisioner behind the broker.

It reads the broker's address and the credentials from flags, then from EBCTL_ADDRESS, EBCTL_USERNAME, EBCTL_PASSWORD and
EBCTL_TOKEN, then from the file $XDG_CONFIG_HOME/ebctl/config.yaml (fields address, username, password, token), to which 'ebctl login' adds
contexts. The commands of 'ebctl provisioner' read EBCTL_PROVISIONER_ADDRESS and so on, and the field provisioner of the file; flags are the
same for both. A token replaces the user and the password of the same source and of later ones. Prefer variables or the file for password and token: process lists show flags.

Exit codes: 0 ok, 1 error, 2 usage, 3 not found, 4 conflict, 5 wait timed out, 6 operation failed, 7 audit log broken, 8 differences found.`

// defaultTimeout is the default value of --timeout, which limits a single request. --wait-timeout limits a wait, which consists
// of many requests.
const defaultTimeout = 30 * time.Second

// newRootCommand returns the root command with all subcommands and global flags. Add new commands to their group here.
func newRootCommand(session *session) *cobra.Command {
	session.format = output.Table

	root := group("ebctl", "Operate an environment broker",
		newDoctorCommand(session),
		newLoginCommand(session),
		group("context", "Show, select and remove stored addresses and credentials",
			newContextListCommand(session),
			newContextUseCommand(session),
			newContextDeleteCommand(session),
		),
		newCatalogCommand(session),
		newInstanceCommand(session),
		group("binding", "Grant and revoke access to the clusters of instances",
			newBindingCreateCommand(session),
			newBindingGetCommand(session),
			newBindingListCommand(session),
			newBindingDeleteCommand(session),
		),
		group("operation", "Show, explain, cancel and retry operations, and skip steps",
			newOperationListCommand(session),
			newOperationGetCommand(session),
			newOperationExplainCommand(session),
			newOperationCancelCommand(session),
			newOperationRetryCommand(session),
			newOperationSkipCommand(session),
		),
		group("runtime", "Show the clusters of instances", newRuntimeListCommand(session)),
		group("process", "Show the steps of the broker's operations", newProcessListCommand(session), newProcessShowCommand(session)),
		group("quota", "Show how many instances tenants may have", newQuotaListCommand(session)),
		group("job", "Show and run the periodic work of the broker", newJobListCommand(session), newJobRunCommand(session)),
		newUpgradeCommand(session), newOrchestrationCommand(session), newEventCommand(session), newWebhookCommand(session),
		newPlatformCommand(session),
		group("adopt", "Take over clusters that other programs have created", newAdoptShootCommand(session)),
		newAuditCommand(session),
		group("account", "Erase account data", newAccountEraseCommand(session)),
		newCloudAccountCommand(session), newCredentialsCommand(session), newLeftoverCommand(session), newReconcileCommand(session),
		newProvisionerCommand(session), newBundleCommand(session),
		newTopCommand(session), newSupportBundleCommand(session),
		newVersionCommand(session),
		newManualCommand(),
	)

	root.Long = rootHelp
	root.Version = session.Version
	root.SetVersionTemplate("{{.Name}} {{.Version}}\n")
	root.SilenceUsage = true
	root.SilenceErrors = true
	root.SetFlagErrorFunc(invalidFlag)

	flags := root.PersistentFlags()

	flags.StringVar(&session.flags.Address, "address", "",
		"the URL of the broker ("+AddressVariable+"; default "+DefaultAddress+") or, in 'ebctl provisioner', of the Provisioner")
	flags.StringVar(&session.flags.Username, "username", "", "the user ("+UsernameVariable+")")
	flags.StringVar((*string)(&session.flags.Password), "password", "", "the user's password ("+PasswordVariable+")")
	flags.StringVar((*string)(&session.flags.Token), "token", "", "a bearer token, instead of a username and a password ("+TokenVariable+")")
	flags.StringVar(&session.configFile, "config", "", "the configuration file ("+ConfigVariable+")")
	flags.StringVar(&session.contextName, "context", "", "the context of the configuration file ("+ContextVariable+"; default: the current one)")
	flags.VarP(&session.format, "output", "o", "output format: table, wide, name, json, yaml, csv, jsonpath=EXPRESSION or go-template=TEMPLATE")
	flags.DurationVar(&session.timeout, "timeout", defaultTimeout, "maximum duration of each request")

	session.rejectCSV(root)
	session.addNoHeaders(root)
	complete(root, "output", output.Formats()...)
	completeBy(root, "context", session.completeContext)

	// Reject unknown shells: Cobra's completion command would print its help and succeed.
	root.InitDefaultCompletionCmd()

	for _, command := range root.Commands() {
		if command.Name() == "completion" {
			command.Args = noCommand
			command.RunE = help
		}
	}

	return root
}

func newInstanceCommand(session *session) *cobra.Command {
	return group("instance", "Create, show, change and delete service instances",
		newInstanceCreateCommand(session),
		newInstanceGetCommand(session),
		newInstanceListCommand(session),
		newInstanceUpdateCommand(session),
		newInstanceSuspendCommand(session),
		newInstanceResumeCommand(session),
		newInstanceExpireCommand(session),
		newInstanceDeleteCommand(session),
		newInstanceKubeconfigCommand(session),
		newInstanceProtectCommand(session),
		newInstanceUnprotectCommand(session),
		newInstanceLabelCommand(session),
		newInstanceUpgradeTimeCommand(session),
	)
}

// version is the JSON output of 'ebctl version'.
type version struct {
	Version string `json:"version"`
	Go      string `json:"go"`
	System  string `json:"system"`
}

// newVersionCommand returns the command that prints the version. It does not call a broker, so it works with any configuration.
func newVersionCommand(session *session) *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Show the version of ebctl",
		Args:  arguments(),
		RunE: func(*cobra.Command, []string) error {
			current := version{Version: session.Version, Go: runtime.Version(), System: runtime.GOOS + "/" + runtime.GOARCH}

			return session.print(current, output.Fields{
				{Name: "ebctl", Value: current.Version},
				{Name: "Go", Value: current.Go},
				{Name: "System", Value: current.System},
			})
		},
	}
}

// invalidFlag returns the error for an invalid flag. Groups have no flags, so if the command is a group, the actual problem is
// the unknown command before the flag. For an unknown flag, the error suggests a similar one.
func invalidFlag(command *cobra.Command, err error) error {
	if words := command.Flags().Args(); command.HasSubCommands() && len(words) > 0 {
		return noCommand(command, words)
	}

	if unknown, is := errors.AsType[*pflag.NotExistError](err); is {
		var known []string

		command.Flags().VisitAll(func(flag *pflag.Flag) { known = append(known, "--"+flag.Name) })

		if near := failure.Suggestion("--"+unknown.GetSpecifiedName(), known); near != "" {
			err = fmt.Errorf("%w%s", err, near)
		}
	}

	return &usageError{cause: err}
}

// group returns a command that has only subcommands. If called without a subcommand, it prints its help.
func group(use, short string, commands ...*cobra.Command) *cobra.Command {
	group := &cobra.Command{Use: use, Short: short, Args: noCommand, RunE: help}
	group.AddCommand(commands...)

	return group
}

func help(command *cobra.Command, _ []string) error { return command.Help() }

// noCommand rejects the arguments of a group: any argument of a group is an unknown subcommand. The error suggests commands with
// similar names.
func noCommand(command *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}

	text := fmt.Sprintf("%q is not a command of %s", args[0], command.CommandPath())

	// Set the maximum edit distance for suggestions, because Cobra applies its default only when it creates the error itself.
	const distance = 2
	command.SuggestionsMinimumDistance = distance

	if near := command.SuggestionsFor(args[0]); len(near) > 0 {
		text += "; did you mean " + strings.Join(near, " or ") + "?"
	}

	return &usageError{cause: errors.New(text)}
}

// arguments requires exactly the named arguments. The error names the first missing or the first superfluous argument.
func arguments(names ...string) cobra.PositionalArgs {
	return func(_ *cobra.Command, args []string) error {
		switch {
		case len(args) < len(names):
			return usage("%s is missing", names[len(args)])
		case len(args) > len(names):
			return usage("unexpected argument %q", args[len(names)])
		default:
			return nil
		}
	}
}

// atLeast requires the named arguments and permits more.
func atLeast(names ...string) cobra.PositionalArgs {
	return func(command *cobra.Command, args []string) error {
		return arguments(names...)(command, args[:min(len(args), len(names))])
	}
}

// withClient returns the run function of a command that calls the session's service.
func (s *session) withClient(run func(ctx context.Context, client *brokerclient.Client, args []string) error) func(*cobra.Command, []string) error {
	return func(command *cobra.Command, args []string) error {
		client, err := s.client()
		if err != nil {
			return err
		}

		return run(command.Context(), client, args)
	}
}

// onInstance sets the arguments, the shell completion and the run function of a command whose first argument is the ID or name of
// an instance. The command finds the instance and then calls run. The words in the command's Use line, except the first, are its
// required arguments.
func (s *session) onInstance(command *cobra.Command, run func(ctx context.Context, instance target, args []string) error) *cobra.Command {
	command.Args = arguments(strings.Fields(command.Use)[1:]...)
	command.ValidArgsFunction = s.completeTarget
	command.RunE = func(command *cobra.Command, args []string) error {
		instance, err := s.find(command.Context(), args[0])
		if err != nil {
			return err
		}

		if err := run(command.Context(), instance, args); err != nil {
			return &instanceError{instanceID: instance.InstanceID, cause: err}
		}

		return nil
	}

	return command
}

// addWait adds the --wait and --wait-timeout flags to a command that can wait for an operation.
func addWait(command *cobra.Command, waiting *waiting) {
	addWaitFor(command, waiting, "wait for the end of the operation and show its progress")
}

// addWaitFor adds the --wait and --wait-timeout flags. help is the help text of --wait.
func addWaitFor(command *cobra.Command, waiting *waiting, help string) {
	command.Flags().BoolVar(&waiting.wanted, "wait", false, help)
	command.Flags().Var(timeLimitOf(&waiting.limit, defaultWait), "wait-timeout", "maximum duration of the wait; 0 means no limit")
}

// complete registers values as the shell completions of a flag.
func complete(command *cobra.Command, flag string, values ...string) {
	completeBy(command, flag, cobra.FixedCompletions(values, cobra.ShellCompDirectiveNoFileComp))
}

// completeBy registers find as the shell completion function of a flag. It panics if the command does not have the flag.
func completeBy(command *cobra.Command, flag string, find cobra.CompletionFunc) {
	if err := command.RegisterFlagCompletionFunc(flag, find); err != nil {
		panic(err) // a programming error
	}
}
