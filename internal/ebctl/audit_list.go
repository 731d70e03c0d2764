package ebctl

import (
	"cmp"
	"context"
	"fmt"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/environment-broker/environment-broker/internal/ebctl/brokerclient"
	"github.com/environment-broker/environment-broker/internal/ebctl/output"
	"github.com/environment-broker/environment-broker/internal/operatorapi"
)

func newAuditListCommand(session *session) *cobra.Command {
	var (
		filter   brokerclient.AuditFilter
		allPages bool
	)

	command := &cobra.Command{
		Use:   "list",
		Short: "Tell who did what, the newest first",
		Args:  arguments(),
		RunE: func(command *cobra.Command, _ []string) error {
			list, err := session.audit(command.Context(), filter, allPages)
			if err != nil {
				return fmt.Errorf("listing the audit trail: %w", err)
			}

			session.noteMore(list.Page)

			return session.print(list, auditText(list))
		},
	}

	flags := command.Flags()
	flags.StringVar(&filter.InstanceID, "instance", "", "only what concerns the instance, by its id")
	flags.StringVar(&filter.User, "user", "", "only on behalf of the user: the platform's where it names one, else the one who sent the request")
	flags.StringVar(&filter.Action, "action", "", "only the action, such as provision, cancel or adminkubeconfig")
	flags.StringVar(&filter.Since, "since", "", "from this time on, such as 2030-01-02T15:04:05Z")
	flags.StringVar(&filter.Until, "until", "", "before this time")
	addAllPages(command, &allPages)

	return command
}

func (s *session) audit(ctx context.Context, filter brokerclient.AuditFilter, allPages bool) (operatorapi.AuditList, error) {
	client, err := s.client()
	if err != nil {
		return operatorapi.AuditList{}, err
	}

	if !allPages {
		return client.Audit(ctx, filter)
	}

	data, err := collect(client.AllAudit(ctx, filter))

	return operatorapi.AuditList{Data: data, Page: pageOfAll(len(data), false)}, err
}

func auditText(list operatorapi.AuditList) output.Text {
	rows := output.Rows{
		Head: []string{"AT", "ACTION", "STATUS", "INSTANCE", "ON BEHALF OF", "SENT BY", "FROM", "REASON"},
		None: "There are no such entries.",
	}

	for _, entry := range list.Data {
		rows.Rows = append(rows.Rows, []string{
			output.Time(entry.At), entry.Action, statusText(entry), entry.InstanceID,
			entry.By.Originator, sentBy(entry.By), entry.By.Address, entry.Reason,
		})
	}

	return rows
}

// sentBy tells who was found out to have sent the request.
func sentBy(actor operatorapi.Actor) string {
	if actor == (operatorapi.Actor{}) {
		return "the broker" // there was no request
	}

	return cmp.Or(actor.User, "a stranger")
}

// statusText tells the status, and how many refusals are not in the trail.
func statusText(entry operatorapi.AuditEntry) string {
	text := strconv.Itoa(entry.Status)
	if entry.Missed > 0 {
		text += fmt.Sprintf(" (%d before it left out)", entry.Missed)
	}

	return text
}
