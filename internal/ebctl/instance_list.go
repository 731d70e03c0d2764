package ebctl

import (
	"cmp"
	"context"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/environment-broker/environment-broker/internal/ebctl/brokerclient"
	"github.com/environment-broker/environment-broker/internal/ebctl/output"
	"github.com/environment-broker/environment-broker/internal/operatorapi"
	"github.com/environment-broker/environment-broker/internal/operatorapi/explain"
)

// newInstanceListCommand returns the command that lists instances, with columns for users: name, plan and state.
func newInstanceListCommand(session *session) *cobra.Command {
	return newRuntimesCommand(session, "List instances, newest first", output.Rows{
		Head:        []string{"NAME", headInstance, "PLAN", "REGION", headState, "AGE", "LAST OPERATION", "PROBLEM"},
		WideColumns: 2, // the last operation and its problem
		None:        "No instances found.",
	}, func(runtime operatorapi.Runtime) []string {
		last := runtime.Status.LastOperation

		return []string{
			runtime.Name, runtime.InstanceID, runtime.ServicePlanName, runtime.Region,
			string(runtime.Status.State), session.age(runtime.Status.CreatedAt),
			strings.TrimSpace(last.Kind + " " + last.ID), explain.ProblemText(last.Problem),
		}
	})
}

// newRuntimeListCommand returns the command that lists the same entries as 'ebctl instance list', with columns for operators:
// accounts and clusters.
func newRuntimeListCommand(session *session) *cobra.Command {
	return newRuntimesCommand(session, "List runtimes with their accounts and clusters, newest first", output.Rows{
		Head: []string{"RUNTIME", "CLUSTER", "ACCOUNT", "SUBACCOUNT", "PLAN", "REGION", headState, headInstance, "AGE"},
		None: "No runtimes found.",
	}, func(runtime operatorapi.Runtime) []string {
		return []string{
			runtime.RuntimeID, runtime.ShootName, runtime.GlobalAccountID, runtime.SubAccountID, runtime.ServicePlanName,
			runtime.Region, string(runtime.Status.State), runtime.InstanceID, session.age(runtime.Status.CreatedAt),
		}
	})
}

// runtimeStates returns the accepted values of the --state flag.
func runtimeStates() []string {
	return []string{
		string(operatorapi.RuntimeStateProvisioning), string(operatorapi.RuntimeStateSucceeded), string(operatorapi.RuntimeStateFailed),
		string(operatorapi.RuntimeStateUpdating), string(operatorapi.RuntimeStateUpgrading), string(operatorapi.RuntimeStateSuspending),
		string(operatorapi.RuntimeStateSuspended), string(operatorapi.RuntimeStateResuming), string(operatorapi.RuntimeStateDeprovisioning),
	}
}

// runtimeSorts returns the accepted values of the --sort flag.
func runtimeSorts() []string {
	return []string{"newest", "oldest", "name", "-name", "plan", "-plan", "region", "-region", "account", "-account"}
}

// newRuntimesCommand returns a list command with flags for the filters of the /runtimes endpoint. The broker's lists of instances and of
// runtimes differ only in their tables. The Provisioner supports only a few of the filters.
func newRuntimesCommand(session *session, short string, table output.Rows, row func(operatorapi.Runtime) []string) *cobra.Command {
	var (
		filter operatorapi.ListRuntimesParams
		state  = choice{noun: "state", values: runtimeStates()}
		noun   = session.noun()
	)

	if session.provisioner {
		state.values = append(state.values, string(operatorapi.RuntimeStateDeleted))
	}

	command := lister[operatorapi.RuntimeList, operatorapi.Runtime]{
		entries: noun + "s",
		table:   table,
		columns: runtimeColumns(),
		row:     row,
		layout: func() (output.Rows, func(operatorapi.Runtime) []string, bool) {
			table, row := session.leftoverTable()

			return table, row, filter.Leftovers
		},
		id: func(runtime operatorapi.Runtime) string { return cmp.Or(runtime.Leftover.ID, runtime.InstanceID) },
		fetch: func(ctx context.Context, client *brokerclient.Client, page pageQuery) (operatorapi.RuntimeList, error) {
			filter.Cursor, filter.PageSize, filter.Total = page.cursor, page.size, page.total
			filter.State = operatorapi.RuntimeState(state.chosen)

			return client.ListRuntimes(ctx, filter)
		},
		parts: func(list *operatorapi.RuntimeList) (*operatorapi.Page, *[]operatorapi.Runtime) {
			return &list.Page, &list.Data
		},
	}.command(session, short, true)

	flags := command.Flags()
	flags.StringVar(&filter.Account, "account", "", "only "+noun+"s of this global account")
	flags.StringVar(&filter.Subaccount, "subaccount", "", "only "+noun+"s of this subaccount")
	flags.Var(&state, "state", "only "+noun+"s in this state: "+strings.Join(state.values, ", "))
	complete(command, "state", state.values...)

	if session.provisioner {
		flags.StringVar(&filter.Name, "shoot", "", "only the runtime whose Shoot has exactly this name")
		flags.StringVar(&filter.Region, "region", "", "only runtimes in this region of the provider")

		return command
	}

	flags.BoolVar(&filter.Leftovers, "leftovers", false,
		"list leftovers instead: deleted instances and runtimes of suspended instances whose deletion did not complete all steps; cannot be combined with --state")
	flags.StringVar(&filter.Name, "name", "", "only instances with exactly this name")
	flags.StringVar(&filter.Search, "search", "",
		"only instances whose name begins with this text, in upper or lower case, or whose ID, Shoot, runtime, account or subaccount is this text")
	flags.BoolVar(&filter.Anywhere, "anywhere", false, "with --search: find the text anywhere in names and IDs, which takes longer the more instances there are")
	flags.StringVar((*string)(&filter.Sort), "sort", "",
		"the order: newest (the default), oldest, name, plan, region or account; -name, -plan, -region and -account sort in descending order")
	complete(command, "sort", runtimeSorts()...)
	flags.StringVar(&filter.Region, "region", "", "only instances whose provider region or platform region has this name")
	flags.StringVar(&filter.Platform, "platform", "", "only instances that this platform owns")
	flags.StringVar(&filter.Labels, "label", "", "only instances with these labels: NAME or NAME=VALUE, separated by commas")
	flags.BoolVar(&filter.Protected, "protected", false, "only instances with deletion protection")
	addColumnFlags(flags, &filter)
	flags.StringVar(&filter.Plan, "plan", "", "only instances of the plan with this name or ID")
	completeBy(command, "plan", session.completePlan)

	return command
}

// addColumnFlags adds the flags that filter by a column. Only the broker supports these filters.
func addColumnFlags(flags *pflag.FlagSet, filter *operatorapi.ListRuntimesParams) {
	flags.StringVar(&filter.Provider, "provider", "", "only instances at this cloud provider")
	flags.StringVar(&filter.Shoot, "shoot", "", "only the instance with this Shoot")
	flags.StringVar(&filter.Runtime, "runtime", "", "only the instance with this runtime ID")
	flags.StringVar(&filter.SubscriptionAccount, "subscription-account", "",
		"only instances that this global account ordered and that were later moved to another account")
	flags.StringVar(&filter.SharedWith, "shared-with", "", "only instances that this platform can use without owning them")
	flags.StringVar(&filter.MaintenanceVersion, "maintenance-version", "", "only instances with this maintenance version of their plan")
	flags.StringVar(&filter.Kind, "kind", "", "only instances whose newest operation has this kind; cannot be combined with --state")
	flags.StringVar(&filter.Operation, "operation", "", "only the instance whose newest operation has this ID")
	flags.StringVar((*string)(&filter.OperationState), "operation-state", "", "only instances whose newest operation has this state; "+
		"cannot be combined with --state")
	flags.StringVar(&filter.Problem, "problem", "", "only instances whose newest operation has a problem with this reason or component, or with this text in its message")
	flags.StringVar(&filter.Service, "service", "", "only instances of the service with this ID")
	flags.StringVar(&filter.DashboardURL, "dashboard-url", "", "only instances with exactly this dashboard URL")
	flags.BoolVar(&filter.Suspended, "suspended", false, "only suspended instances, including those whose runtime is being created again")
	flags.StringVar(&filter.KubernetesVersion, "kubernetes-version", "",
		"only instances for which the broker last ordered this version: 1.34 selects 1.34 and 1.34.2; cannot be combined with --total")
	flags.StringVar(&filter.KymaVersion, "kyma-version", "", "only instances for which the broker last ordered this version of Kyma; "+
		"cannot be combined with --total")
	flags.StringVar(&filter.UpdatedSince, "updated-since", "", "only instances that changed, or whose newest operation changed, at or after this time")
	flags.StringVar(&filter.UpdatedBefore, "updated-before", "", "only instances that last changed, and whose newest operation last changed, before this time")
	flags.BoolVar(&filter.Expired, "expired", false, "only expired instances")
	flags.StringVar(&filter.ExpiresBefore, "expires-before", "", "only instances that have not expired and will expire before this time, such as 2030-01-02T15:04:05Z")
	flags.StringVar(&filter.Since, "since", "", "only instances created at or after this time")
	flags.StringVar(&filter.Until, "until", "", "only instances created before this time")
}
