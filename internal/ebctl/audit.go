package ebctl

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/environment-broker/environment-broker/internal/ebctl/brokerclient"
	"github.com/environment-broker/environment-broker/internal/ebctl/output"
	"github.com/environment-broker/environment-broker/internal/operatorapi"
)

func newAuditCommand(session *session) *cobra.Command {
	return group("audit", "Show, verify and export the audit log", newAuditListCommand(session), newAuditGetCommand(session),
		newAuditVerifyCommand(session), newAuditExportCommand(session))
}

func newAuditListCommand(session *session) *cobra.Command {
	var (
		filter   operatorapi.ListAuditParams
		instance string
	)

	command := lister[operatorapi.AuditList, operatorapi.AuditEntry]{
		entries: "the audit log",
		prepare: func(ctx context.Context, client *brokerclient.Client) (err error) {
			filter.InstanceID, err = session.anyID(ctx, client, instance)

			return err
		},
		fetch: func(ctx context.Context, client *brokerclient.Client, page pageQuery) (operatorapi.AuditList, error) {
			filter.Cursor, filter.PageSize = page.cursor, page.size

			return client.ListAudit(ctx, filter)
		},
		parts: func(list *operatorapi.AuditList) (*operatorapi.Page, *[]operatorapi.AuditEntry) {
			return &list.Page, &list.Data
		},
		id: func(entry operatorapi.AuditEntry) string { return entry.ID },
		table: output.Rows{
			Head:        []string{"AT", "ACTION", "STATUS", "CODE", strings.ToUpper(session.noun()), "ON BEHALF OF", "SENT BY", "FROM", "REASON", "ID", "OPERATION"},
			WideColumns: 2, // the IDs of the entry and the operation
			None:        "No entries found.",
		},
		row:     session.auditRow,
		columns: auditColumns(),
	}.command(session, "List the entries of the audit log, newest first", false)

	flags := command.Flags()
	flags.StringVar(&instance, session.noun(), "", "only entries about the "+session.noun()+" with this ID or name")
	flags.StringVar(&filter.User, "user", "", "only entries of this user: the user that the platform names in the request or, by default, the sender of the request")
	flags.StringVar(&filter.Action, "action", "", "only entries with this action, such as provision, cancel or adminkubeconfig")
	flags.StringVar(&filter.Since, "since", "", "only entries at or after this time, such as 2030-01-02T15:04:05Z")
	flags.StringVar(&filter.Until, "until", "", "only entries before this time")
	completeBy(command, session.noun(), session.completeInstance)

	return command
}

// senderOf returns the user who sent a request. An entry without an actor describes an action of the broker itself, such as the
// expiry of an instance.
func (s *session) senderOf(entry operatorapi.AuditEntry) string {
	if entry.By == (operatorapi.Actor{}) {
		return s.text("the broker")
	}

	return cmp.Or(entry.By.User, "unauthenticated")
}

// statusOf returns the HTTP status of an entry, followed by the number of earlier rejected requests that sampling left out of the
// audit log.
func statusOf(entry operatorapi.AuditEntry) string {
	status := strconv.Itoa(entry.Status)
	if entry.Missed > 0 {
		status += fmt.Sprintf(" (%d earlier rejected requests not recorded)", entry.Missed)
	}

	return status
}

func (s *session) auditRow(entry operatorapi.AuditEntry) []string {
	return []string{
		output.Time(entry.At), entry.Action, statusOf(entry), entry.Code, entry.InstanceID,
		entry.By.Originator, s.senderOf(entry), entry.By.Address, entry.Reason, entry.ID, entry.OperationID,
	}
}

func newAuditGetCommand(session *session) *cobra.Command {
	return &cobra.Command{
		Use:   "get ID",
		Short: "Show an entry of the audit log with the changed fields",
		Long: session.text("Show an entry of the audit log with the changed fields. 'ebctl audit list -o wide' shows the IDs. " +
			"The command needs the admin role."),
		Args: arguments("ID"),
		RunE: session.withClient(func(ctx context.Context, client *brokerclient.Client, args []string) error {
			entry, err := client.GetAuditEntry(ctx, args[0])
			if err != nil {
				return fmt.Errorf("reading entry %s of the audit log: %w", args[0], err)
			}

			return session.print(entry, output.WithID{ID: entry.ID, Text: output.Fields{
				{Name: "Entry", Value: entry.ID},
				{Name: "At", Value: output.Time(entry.At)},
				{Name: "Action", Value: entry.Action},
				{Name: "Status", Value: statusOf(entry)},
				{Name: "Code", Value: entry.Code},
				{Name: "Reason", Value: entry.Reason},
				{Name: session.title(), Value: entry.InstanceID},
				{Name: "Operation", Value: entry.OperationID},
				{Name: "Binding", Value: entry.BindingID},
				{Name: "Account", Value: entry.AccountID},
				{Name: "Erased by", Value: entry.ErasedBy},
				{Name: "On behalf of", Value: entry.By.Originator},
				{Name: "Sent by", Value: session.senderOf(entry)},
				{Name: "By means of", Value: entry.By.Means},
				{Name: "Platform", Value: entry.By.Platform},
				{Name: "From", Value: entry.By.Address},
				{Name: "Request", Value: entry.By.RequestID},
				{Name: "Before", Value: fieldsOf(entry.Before)},
				{Name: "After", Value: fieldsOf(entry.After)},
			}})
		}),
	}
}

// fieldsOf returns the fields as JSON, or an empty string if there are none.
func fieldsOf(fields map[string]any) string {
	if len(fields) == 0 {
		return ""
	}

	encoded, _ := json.Marshal(fields) //nolint:errchkjson // decoded from JSON

	return string(encoded)
}
