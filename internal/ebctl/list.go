package ebctl

import (
	"cmp"
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/environment-broker/environment-broker/internal/ebctl/brokerclient"
	"github.com/environment-broker/environment-broker/internal/ebctl/output"
	"github.com/environment-broker/environment-broker/internal/operatorapi"
	"github.com/environment-broker/environment-broker/process"
)

// lister is a list command of the operator API. L is a list as the API returns it, one page at a time; E is an entry of the list.
type lister[L, E any] struct {
	// entries is the plural noun of the entries, for errors such as "listing operations: …".
	entries string
	// fetch returns the page at the cursor. If total is true, the page includes the number of entries on all pages.
	fetch func(ctx context.Context, client *brokerclient.Client, cursor string, total bool) (L, error)
	// parts returns pointers to the paging fields and the entries of a list, because the types of lists share no interface.
	parts func(list *L) (*operatorapi.Page, *[]E)
	// text returns the list as a table.
	text func(list L) output.Text
}

// command returns the list command with the flag --all-pages. withTotal adds the flag --total, which the audit log does not support.
func (l lister[L, E]) command(session *session, short string, withTotal bool) *cobra.Command {
	var all, total bool

	command := &cobra.Command{
		Use:   "list",
		Short: short,
		Args:  arguments(),
		RunE: func(command *cobra.Command, _ []string) error {
			list, err := l.list(command.Context(), session, all, total)
			if err != nil {
				return fmt.Errorf("listing %s: %w", l.entries, err)
			}

			page, _ := l.parts(&list)

			if page.TotalCount != nil {
				fmt.Fprintf(session.Err, "Total: %d\n", *page.TotalCount)
			}

			if page.Cursor != "" {
				fmt.Fprintf(session.Err, "Only the first %d entries are listed. Use --all-pages to list all entries.\n", page.Count)
			}

			return session.print(list, l.text(list))
		},
	}

	command.Flags().BoolVar(&all, "all-pages", false, "list all entries instead of the first page")

	if withTotal {
		command.Flags().BoolVar(&total, "total", false, "show the number of entries on all pages")
	}

	return command
}

// list returns the first page, or all pages as one list without a cursor. The count of all pages is then also the total.
func (l lister[L, E]) list(ctx context.Context, session *session, all, total bool) (L, error) {
	var list L

	client, err := session.client()
	if err != nil {
		return list, err
	}

	if !all {
		return l.fetch(ctx, client, "", total)
	}

	page, data := l.parts(&list)
	*data = []E{}

	for entry, err := range brokerclient.All(func(cursor string) ([]E, string, error) {
		next, err := l.fetch(ctx, client, cursor, false)
		page, data := l.parts(&next)

		return *data, page.Cursor, err
	}) {
		if err != nil {
			return list, err
		}

		*data = append(*data, entry)
	}

	page.Count = len(*data)
	if total {
		page.TotalCount = &page.Count
	}

	return list, nil
}

// newInstanceListCommand lists instances with the columns for users: name, plan and state.
func newInstanceListCommand(session *session) *cobra.Command {
	return newRuntimesCommand(session, "List instances, newest first", func(list operatorapi.RuntimeList) output.Text {
		rows := output.Rows{
			Head: []string{"NAME", "INSTANCE", "PLAN", "REGION", "STATE", "AGE"},
			None: "No instances found.",
		}

		for _, runtime := range list.Data {
			rows.Rows = append(rows.Rows, []string{
				runtime.Name, runtime.InstanceID, runtime.ServicePlanName, runtime.Region,
				string(runtime.Status.State), session.age(runtime.Status.CreatedAt),
			})
		}

		return rows
	})
}

// newRuntimeListCommand lists the same entries as 'ebctl instance list', with the columns for operators: accounts and clusters.
func newRuntimeListCommand(session *session) *cobra.Command {
	return newRuntimesCommand(session, "List runtimes with their accounts and clusters, newest first",
		func(list operatorapi.RuntimeList) output.Text {
			rows := output.Rows{
				Head: []string{"RUNTIME", "CLUSTER", "ACCOUNT", "SUBACCOUNT", "PLAN", "REGION", "STATE", "INSTANCE", "AGE"},
				None: "No runtimes found.",
			}

			for _, runtime := range list.Data {
				rows.Rows = append(rows.Rows, []string{
					runtime.RuntimeID, runtime.ShootName, runtime.GlobalAccountID, runtime.SubAccountID, runtime.ServicePlanName,
					runtime.Region, string(runtime.Status.State), runtime.InstanceID, session.age(runtime.Status.CreatedAt),
				})
			}

			return rows
		})
}

// newRuntimesCommand returns a list command with the filters of the endpoint /runtimes. The commands for instances and runtimes differ in
// their tables only.
func newRuntimesCommand(session *session, short string, text func(operatorapi.RuntimeList) output.Text) *cobra.Command {
	var filter operatorapi.ListRuntimesParams

	command := lister[operatorapi.RuntimeList, operatorapi.Runtime]{
		entries: "instances",
		text:    text,
		fetch: func(ctx context.Context, client *brokerclient.Client, cursor string, total bool) (operatorapi.RuntimeList, error) {
			filter.Cursor, filter.Total = cursor, total

			return client.ListRuntimes(ctx, filter)
		},
		parts: func(list *operatorapi.RuntimeList) (*operatorapi.Page, *[]operatorapi.Runtime) {
			return &list.Page, &list.Data
		},
	}.command(session, short, true)

	states := []string{
		string(operatorapi.RuntimeStateProvisioning), string(operatorapi.RuntimeStateSucceeded), string(operatorapi.RuntimeStateFailed),
		string(operatorapi.RuntimeStateUpdating), string(operatorapi.RuntimeStateSuspending), string(operatorapi.RuntimeStateSuspended),
		string(operatorapi.RuntimeStateResuming), string(operatorapi.RuntimeStateDeprovisioning),
	}

	flags := command.Flags()
	flags.StringVar(&filter.Account, "account", "", "only instances of the global account")
	flags.StringVar(&filter.Subaccount, "subaccount", "", "only instances of the subaccount")
	flags.StringVar(&filter.Region, "region", "", "only instances whose provider region or platform region has this name")
	flags.StringVar(&filter.Plan, "plan", "", "only instances of the plan, by its name or ID")
	flags.StringVar((*string)(&filter.State), "state", "", "only instances in the state: "+strings.Join(states, ", "))
	completeBy(command, "plan", session.completePlan)
	complete(command, "state", states...)

	return command
}

// newOperationListCommand lists operations of all instances, with the filters of the endpoint /operations.
func newOperationListCommand(session *session) *cobra.Command {
	var filter operatorapi.ListOperationsParams

	command := lister[operatorapi.OperationList, operatorapi.Operation]{
		entries: "operations",
		text:    session.operationsText,
		fetch: func(ctx context.Context, client *brokerclient.Client, cursor string, total bool) (operatorapi.OperationList, error) {
			filter.Cursor, filter.Total = cursor, total

			return client.ListOperations(ctx, filter)
		},
		parts: func(list *operatorapi.OperationList) (*operatorapi.Page, *[]operatorapi.Operation) {
			return &list.Page, &list.Data
		},
	}.command(session, "List operations, newest first", true)

	flags := command.Flags()
	flags.StringVar(&filter.InstanceID, "instance", "", "only operations of the instance, by its ID")
	flags.StringVar(&filter.Kind, "kind", "", "only operations of the kind, such as provision or deprovision")
	flags.StringVar((*string)(&filter.State), "state", "", `only operations in the state, such as "in progress" or failed`)
	complete(command, "state",
		string(process.Pending), string(process.InProgress), string(process.Canceling),
		string(process.Succeeded), string(process.Failed), string(process.Canceled))

	return command
}

// operationsText returns a list of operations as a table.
func (s *session) operationsText(list operatorapi.OperationList) output.Text {
	rows := output.Rows{
		Head: []string{"OPERATION", "KIND", "STATE", "STAGE", "STEP", "INSTANCE", "AGE"},
		None: "No operations found.",
	}

	for _, operation := range list.Data {
		rows.Rows = append(rows.Rows, []string{
			operation.ID, operation.Kind, string(operation.State), operation.Stage, operation.Step,
			operation.InstanceID, s.age(operation.CreatedAt),
		})
	}

	return rows
}

// newAuditListCommand lists the audit log, which needs the role admin.
func newAuditListCommand(session *session) *cobra.Command {
	var filter operatorapi.ListAuditParams

	command := lister[operatorapi.AuditList, operatorapi.AuditEntry]{
		entries: "the audit log",
		text:    auditText,
		fetch: func(ctx context.Context, client *brokerclient.Client, cursor string, _ bool) (operatorapi.AuditList, error) {
			filter.Cursor = cursor

			return client.ListAudit(ctx, filter)
		},
		parts: func(list *operatorapi.AuditList) (*operatorapi.Page, *[]operatorapi.AuditEntry) {
			return &list.Page, &list.Data
		},
	}.command(session, "List the entries of the audit log, newest first", false)

	flags := command.Flags()
	flags.StringVar(&filter.InstanceID, "instance", "", "only entries about the instance, by its ID")
	flags.StringVar(&filter.User, "user", "", "only entries on behalf of the user: the platform's user if the platform names one, otherwise the sender")
	flags.StringVar(&filter.Action, "action", "", "only the action, such as provision, cancel or adminkubeconfig")
	flags.StringVar(&filter.Since, "since", "", "only entries at or after this time, such as 2030-01-02T15:04:05Z")
	flags.StringVar(&filter.Until, "until", "", "only entries before this time")

	return command
}

// auditText returns entries of the audit log as a table. An entry without an actor describes an action of the broker itself, such as the
// expiry of an instance.
func auditText(list operatorapi.AuditList) output.Text {
	rows := output.Rows{
		Head: []string{"AT", "ACTION", "STATUS", "INSTANCE", "ON BEHALF OF", "SENT BY", "FROM", "REASON"},
		None: "No entries found.",
	}

	for _, entry := range list.Data {
		sender := cmp.Or(entry.By.User, "unauthenticated")
		if entry.By == (operatorapi.Actor{}) {
			sender = "the broker"
		}

		status := strconv.Itoa(entry.Status)
		if entry.Missed > 0 {
			status += fmt.Sprintf(" (%d earlier refusals not recorded)", entry.Missed)
		}

		rows.Rows = append(rows.Rows, []string{
			output.Time(entry.At), entry.Action, status, entry.InstanceID,
			entry.By.Originator, sender, entry.By.Address, entry.Reason,
		})
	}

	return rows
}
