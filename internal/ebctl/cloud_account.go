package ebctl

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/environment-broker/environment-broker/internal/ebctl/brokerclient"
	"github.com/environment-broker/environment-broker/internal/ebctl/output"
	"github.com/environment-broker/environment-broker/internal/operatorapi"
)

// accountsGroup is the name of the command group for the account pool.
const accountsGroup = "accounts"

func newCloudAccountCommand(session *session) *cobra.Command {
	return group(accountsGroup, "Show, clean up and release the cloud accounts of the account pool",
		newCloudAccountListCommand(session),
		newCloudAccountExplainCommand(session),
		newCloudAccountCleanupCommand(session),
		newCloudAccountReleaseCommand(session),
	)
}

func newCloudAccountListCommand(session *session) *cobra.Command {
	var accountType, tenant string

	state := choice{noun: "state", values: []string{"internal", "releasing", "dirty", "shared", "claimed", "labeled", "free"}}

	command := &cobra.Command{
		Use:   listCommand,
		Short: "List the accounts with their states",
		Args:  arguments(),
		RunE: session.withClient(func(ctx context.Context, client *brokerclient.Client, _ []string) error {
			list, err := client.ListCloudAccounts(ctx)
			if err != nil {
				return fmt.Errorf("listing the accounts: %w", err)
			}

			list.Data = slices.DeleteFunc(list.Data, func(each operatorapi.CloudAccount) bool {
				return accountType != "" && each.Type != accountType ||
					state.chosen != "" && string(each.State) != state.chosen ||
					tenant != "" && each.Tenant != tenant
			})

			table := output.Rows{
				Head: []string{"NAME", "TYPE", headState, "TENANT", "EU", "INSTANCES", "SHOOTS"}, None: "No accounts found.", IDs: []string{},
			}

			for _, each := range list.Data {
				eu := ""
				if each.EUAccess {
					eu = "yes"
				}

				table.Add(each.Name,
					each.Name, each.Type, string(each.State), each.Tenant, eu, strconv.Itoa(len(each.Instances)), strconv.Itoa(len(each.Shoots)))
			}

			return session.print(list, table)
		}),
	}

	flags := command.Flags()
	flags.StringVar(&accountType, "type", "", "only accounts with this hyperscalerType")
	flags.Var(&state, "state", "only accounts in this state: "+strings.Join(state.values, ", "))
	flags.StringVar(&tenant, "tenant", "", "only accounts of this tenant")
	complete(command, "state", state.values...)

	return command
}

func newCloudAccountExplainCommand(session *session) *cobra.Command {
	return &cobra.Command{
		Use:   "explain NAME",
		Short: "Explain the state of an account, and show its instances and Shoots",
		Args:  arguments("NAME"),
		RunE: session.withClient(func(ctx context.Context, client *brokerclient.Client, args []string) error {
			account, err := findCloudAccount(ctx, client, args[0])
			if err != nil {
				return err
			}

			return session.print(account, output.WithID{ID: account.Name, Text: cloudAccountFields(account)})
		}),
	}
}

func newCloudAccountReleaseCommand(session *session) *cobra.Command {
	var (
		dryRun bool
		reason string
	)

	command := addYes(session, &cobra.Command{
		Use:   "release NAME",
		Short: "Release a dirty account for other tenants after emptying it",
		Long: "Release a dirty account for other tenants after emptying it.\n\n" +
			"The broker removes the dirty and tenantName labels. It neither inspects the account nor deletes anything in it." + helpAudited,
		Args: arguments("NAME"),
		RunE: session.withClient(func(ctx context.Context, client *brokerclient.Client, args []string) error {
			account, err := findCloudAccount(ctx, client, args[0])
			if err != nil {
				return err
			}

			if dryRun {
				return session.print(account, output.WithID{ID: account.Name, Text: cloudAccountFields(account)})
			}

			if account.State == operatorapi.CloudAccountStateDirty {
				if err := session.confirm(ctx, "Is account %s of tenant %s empty, and may another tenant use it?", account.Name, account.Tenant); err != nil {
					return err
				}
			}

			released, err := client.ReleaseCloudAccount(ctx, account.Name, operatorapi.Justification{Reason: reason})
			if err != nil {
				return fmt.Errorf("releasing the account %s: %w", account.Name, err)
			}

			return session.print(released, output.WithID{ID: released.Name, Text: output.Fields{
				{Name: "Released", Value: released.Name}, {Name: "Former tenant", Value: released.Tenant},
			}})
		}),
	})

	command.Flags().BoolVar(&dryRun, "dry-run", false, "only show the account and what prevents its release")
	addReason(command, &reason, &dryRun, "the audit log and the broker's log")

	return command
}

func findCloudAccount(ctx context.Context, client *brokerclient.Client, name string) (operatorapi.CloudAccount, error) {
	list, err := client.ListCloudAccounts(ctx)
	if err != nil {
		return operatorapi.CloudAccount{}, fmt.Errorf("listing the accounts: %w", err)
	}

	for _, account := range list.Data {
		if account.Name == name {
			return account, nil
		}
	}

	return operatorapi.CloudAccount{}, &notFoundError{text: "there is no account " + name + " in the account pool"}
}

func cloudAccountFields(account operatorapi.CloudAccount) output.Fields {
	return output.Fields{
		{Name: "Account", Value: account.Name},
		{Name: "Type", Value: account.Type},
		{Name: "State", Value: string(account.State)},
		{Name: "Tenant", Value: account.Tenant},
		{Name: "Instances", Value: strings.Join(account.Instances, ", ")},
		{Name: "Shoots", Value: strings.Join(account.Shoots, ", ")},
		{Name: "Meaning", Value: account.Meaning},
	}
}
