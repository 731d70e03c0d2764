package ebctl

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/environment-broker/environment-broker/internal/ebctl/brokerclient"
	"github.com/environment-broker/environment-broker/internal/ebctl/output"
	"github.com/environment-broker/environment-broker/internal/operatorapi"
)

func newCredentialsCommand(session *session) *cobra.Command {
	return group("credentials", "Show and renew the runtime kubeconfigs of Lifecycle Manager and the Reconciler",
		newCredentialsListCommand(session),
		newCredentialsRenewCommand(session),
	)
}

func newCredentialsListCommand(session *session) *cobra.Command {
	var (
		filter   operatorapi.ListCredentialsParams
		instance string
		problems bool
	)

	command := lister[operatorapi.CredentialList, operatorapi.Credential]{
		entries: "credentials",
		prepare: func(ctx context.Context, client *brokerclient.Client) (err error) {
			filter.InstanceID, err = instanceID(ctx, client, instance)

			return err
		},
		fetch: func(ctx context.Context, client *brokerclient.Client, page pageQuery) (operatorapi.CredentialList, error) {
			filter.Cursor, filter.PageSize = page.cursor, page.size

			return client.ListCredentials(ctx, filter)
		},
		parts: func(list *operatorapi.CredentialList) (*operatorapi.Page, *[]operatorapi.Credential) {
			return &list.Page, &list.Data
		},
		keep: func() func(operatorapi.Credential) bool {
			if !problems {
				return nil
			}

			return func(credential operatorapi.Credential) bool { return credential.Problem != "" }
		},
		id:      func(credential operatorapi.Credential) string { return credential.InstanceID + "/" + credential.System },
		columns: credentialColumns(),
		table: output.Rows{
			Head:        []string{headInstance, "SYSTEM", "ISSUED", "VALID UNTIL", "RENEWAL", "PROBLEM", "NAME"},
			WideColumns: 1,  // the name
			Cut:         60, // keeps a table with a long problem readable
			None:        "No credentials found.",
		},
		row: func(credential operatorapi.Credential) []string {
			return []string{
				credential.InstanceID, credential.System, moment(credential.IssuedAt), moment(credential.ValidUntil), renewalText(credential.RenewAt),
				credential.Problem, credential.Name,
			}
		},
	}.command(session, "List the kubeconfigs, and when the broker renews them", false)

	flags := command.Flags()
	flags.StringVar(&instance, "instance", "", "only kubeconfigs for the instance with this ID or name")
	flags.BoolVar(&problems, "problems", false, "only kubeconfigs whose latest renewal has failed")
	completeBy(command, "instance", session.completeInstance)

	return command
}

func newCredentialsRenewCommand(session *session) *cobra.Command {
	var wanted operatorapi.CredentialRenewal

	command := session.onInstance(&cobra.Command{
		Use:   "renew ID_OR_NAME",
		Short: "Renew the kubeconfigs of an instance immediately",
		Long: "Renew the kubeconfigs of an instance immediately.\n\n" +
			"The broker starts the renewal within seconds; 'ebctl credentials list' shows the result. The previous kubeconfig stays valid until it " +
			"expires." + helpAudited,
		Example: "  ebctl credentials renew my-runtime --dry-run\n  ebctl credentials renew my-runtime --reason 'the Reconciler has lost its database'",
	}, func(ctx context.Context, instance target, _ []string) error {
		renewals, err := instance.RenewCredentials(ctx, instance.InstanceID, wanted)
		if err != nil {
			return fmt.Errorf("renewing the credentials of instance %s: %w", instance.InstanceID, err)
		}

		table := output.Rows{Head: []string{"SYSTEM", "VALID UNTIL", "RENEWAL", "OBSTACLE", "NAME"}, WideColumns: 1, IDs: []string{}}

		for _, credential := range renewals.Data {
			next := "now"
			if credential.Obstacle != "" {
				next = renewalText(credential.RenewAt)
			}

			table.Add(credential.InstanceID+"/"+credential.System, credential.System, moment(credential.ValidUntil), next, credential.Obstacle, credential.Name)
		}

		return session.print(renewals, table)
	})

	command.Flags().BoolVar(&wanted.DryRun, "dry-run", false, "only show what would be renewed, and what prevents a renewal")
	addReason(command, &wanted.Reason, &wanted.DryRun, "the audit log and the broker's log")

	return command
}

// moment returns a time for tables, or an empty string if it is unknown.
func moment(at time.Time) string {
	if at.IsZero() {
		return ""
	}

	return at.UTC().Format("2006-01-02 15:04")
}

// renewalText formats the time of the next renewal. A zero time means that the renewal is due, and results in "now".
func renewalText(at time.Time) string {
	if at.IsZero() {
		return "now"
	}

	return moment(at)
}
