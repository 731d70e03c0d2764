package ebctl

import (
	"time"

	"github.com/spf13/cobra"

	"github.com/environment-broker/environment-broker/internal/ebctl/output"
	"github.com/environment-broker/environment-broker/internal/ebctl/settings"
)

const rootHelp = `ebctl orders, shows and removes service instances, and follows the operations that carry them.

It takes the broker's address and the credentials from its flags, else from EBCTL_ADDRESS, EBCTL_USERNAME, EBCTL_PASSWORD and
EBCTL_TOKEN, else from the file $XDG_CONFIG_HOME/ebctl/config.yaml (fields address, username, password, token). A token is sent in
place of user and password. Prefer variables or the file for password and token: flags show in process lists.

Exit codes: 0 ok, 1 error, 2 usage, 3 not found, 4 conflict, 5 wait timed out, 6 operation failed.`

// defaultTimeout is for one call of the broker, not for a wait.
const defaultTimeout = 30 * time.Second

func newRootCommand(session *session) *cobra.Command {
	session.format = output.Table

	root := group("ebctl", "Work with an environment broker",
		newCatalogCommand(session),
		group("instance", "Order, show, change and remove service instances",
			newInstanceCreateCommand(session),
			newInstanceGetCommand(session),
			newInstanceListCommand(session),
			newInstanceUpdateCommand(session),
			newInstanceSuspendCommand(session),
			newInstanceResumeCommand(session),
			newInstanceExpireCommand(session),
			newInstanceDeleteCommand(session),
			newInstanceKubeconfigCommand(session),
		),
		group("binding", "Give and take access to the clusters of instances",
			newBindingCreateCommand(session),
			newBindingGetCommand(session),
			newBindingListCommand(session),
			newBindingDeleteCommand(session),
		),
		group("operation", "Look at the work on instances, and intervene in it",
			newOperationListCommand(session),
			newOperationGetCommand(session),
			newOperationExplainCommand(session),
			newOperationCancelCommand(session),
			newOperationRetryCommand(session),
			newOperationSkipCommand(session),
		),
		group("runtime", "Look at the clusters behind instances",
			newRuntimeListCommand(session),
		),
		group("audit", "Look at who did what",
			newAuditListCommand(session),
		),
		newVersionCommand(session),
	)

	root.Long = rootHelp
	root.SilenceUsage = true
	root.SilenceErrors = true
	root.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return &usageError{cause: err} })

	addGlobalFlags(root, session)
	addCompletion(root)

	return root
}

func addGlobalFlags(root *cobra.Command, session *session) {
	flags := root.PersistentFlags()

	flags.StringVar(&session.flags.Address, "address", "",
		"the broker's URL ("+settings.AddressVariable+"; "+settings.DefaultAddress+" by default)")
	flags.StringVar(&session.flags.Username, "username", "", "the user ("+settings.UsernameVariable+")")
	flags.StringVar((*string)(&session.flags.Password), "password", "", "the user's password ("+settings.PasswordVariable+")")
	flags.StringVar((*string)(&session.flags.Token), "token", "", "a token, in place of user and password ("+settings.TokenVariable+")")
	flags.StringVar(&session.configFile, "config", "", "the configuration file ("+settings.ConfigVariable+")")
	flags.VarP(&session.format, "output", "o", "how results are printed: table, json or yaml")
	flags.DurationVar(&session.timeout, "timeout", defaultTimeout, "for each call of the broker")

	complete(root, "output", output.Formats()...)
}

// addCompletion adds cobra's command that prints the scripts for shells.
func addCompletion(root *cobra.Command) {
	root.InitDefaultCompletionCmd()

	for _, command := range root.Commands() {
		if command.Name() == "completion" {
			command.Args = noCommand
			command.RunE = help
		}
	}
}
