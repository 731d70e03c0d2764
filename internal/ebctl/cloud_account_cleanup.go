package ebctl

import (
	"context"
	"fmt"
	"slices"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/environment-broker/environment-broker/internal/ebctl/brokerclient"
	"github.com/environment-broker/environment-broker/internal/ebctl/output"
	"github.com/environment-broker/environment-broker/internal/operatorapi"
)

func newCloudAccountCleanupCommand(session *session) *cobra.Command {
	var (
		dryRun bool
		reason string
	)

	command := &cobra.Command{
		Use:   "cleanup [NAME...]",
		Short: "Call the cleanup hook for dirty accounts now, by default for all dirty accounts that are not in use",
		Long: "Call the cleanup hook for dirty accounts now, by default for all dirty accounts that are not in use.\n\n" +
			"The hook empties the accounts, and confirms when an account is empty; the account is then free. The broker also calls the hook " +
			"regularly in the background." + helpAudited,
		Example: "  ebctl accounts cleanup --dry-run\n" +
			"  ebctl accounts cleanup --reason \"the hook is back\"",
		Args: cobra.ArbitraryArgs,
		RunE: session.withClient(func(ctx context.Context, client *brokerclient.Client, args []string) error {
			chosen, err := chooseDirtyAccounts(ctx, client, args)
			if err != nil {
				return err
			}

			return session.cleanUpAccounts(ctx, client, chosen, dryRun, reason)
		}),
	}

	command.Flags().BoolVar(&dryRun, "dry-run", false, "only list the accounts with the hook's last responses")
	addReason(command, &reason, &dryRun, "the audit log and the broker's log")

	return command
}

// chooseDirtyAccounts returns the dirty accounts with the given names or, without names, all dirty accounts that no instance or
// Shoot uses.
func chooseDirtyAccounts(ctx context.Context, client *brokerclient.Client, names []string) ([]operatorapi.CloudAccount, error) {
	list, err := client.ListCloudAccounts(ctx)
	if err != nil {
		return nil, fmt.Errorf("listing the accounts: %w", err)
	}

	dirty := slices.DeleteFunc(list.Data, func(account operatorapi.CloudAccount) bool {
		return account.State != operatorapi.CloudAccountStateDirty || len(names) > 0 && !slices.Contains(names, account.Name) ||
			len(names) == 0 && len(account.Instances)+len(account.Shoots) > 0
	})

	for _, name := range names {
		if !slices.ContainsFunc(dirty, func(account operatorapi.CloudAccount) bool { return account.Name == name }) {
			return nil, &notFoundError{text: "there is no dirty account " + name + " in the account pool"}
		}
	}

	return dirty, nil
}

// cleanUpAccounts calls the hook for each account and prints the responses. A dry run calls no hook, and prints the responses to
// the previous calls. It stops at the first error.
func (s *session) cleanUpAccounts(ctx context.Context, client *brokerclient.Client, accounts []operatorapi.CloudAccount, dryRun bool, reason string) error {
	answers := operatorapi.CloudAccountCleanupList{Data: []operatorapi.CloudAccountCleanup{}}
	table := output.Rows{
		Head: []string{"NAME", "DIRTY", "ATTEMPTS", "RESULT", "NEXT", "MESSAGE"}, None: "There is nothing to clean up.", IDs: []string{},
	}

	for _, account := range accounts {
		cleanup := account.Cleanup
		cleanup.Account = account.Name

		if !dryRun {
			var err error
			if cleanup, err = client.CleanCloudAccount(ctx, account.Name, operatorapi.Justification{Reason: reason}); err != nil {
				return fmt.Errorf("cleaning up the account %s: %w", account.Name, err)
			}
		}

		dirty, next := "", ""
		if !cleanup.DirtySince.IsZero() { // zero until the broker has recorded the account
			dirty, next = s.age(cleanup.DirtySince), cleanup.NextAttemptAt.UTC().Format("2006-01-02 15:04")
		}

		if cleanup.State == operatorapi.CloudAccountCleanupStateClean {
			next = ""
		}

		answers.Data = append(answers.Data, cleanup)
		table.Add(cleanup.Account, cleanup.Account, dirty, strconv.Itoa(cleanup.Attempts), string(cleanup.State), next, cleanup.Message)
	}

	return s.print(answers, table)
}
