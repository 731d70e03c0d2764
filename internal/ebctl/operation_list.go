package ebctl

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/environment-broker/environment-broker/internal/ebctl/brokerclient"
	"github.com/environment-broker/environment-broker/internal/ebctl/output"
	"github.com/environment-broker/environment-broker/internal/environment"
	"github.com/environment-broker/environment-broker/internal/operatorapi"
	"github.com/environment-broker/environment-broker/internal/operatorapi/explain"
	"github.com/environment-broker/environment-broker/process"
)

// operationStates returns the accepted values of the --state flag.
func operationStates() []string {
	return []string{
		string(process.Pending), string(process.InProgress), string(process.Canceling),
		string(process.Succeeded), string(process.Failed), string(process.Canceled),
	}
}

// operationKinds returns the suggested values of the --kind flag. The flag accepts other values too, because later versions of
// the service may have more kinds.
func (s *session) operationKinds() []string {
	if s.provisioner {
		return provisionerKinds()
	}

	return environment.AllKinds()
}

// newOperationListCommand returns the command that lists operations of all instances, or of all runtimes of the Provisioner, with
// the filters of the /operations endpoint.
func newOperationListCommand(session *session) *cobra.Command {
	var (
		filter   operatorapi.ListOperationsParams
		instance string
		stuck    bool
		state    = choice{noun: "state", values: operationStates()}
	)

	command := lister[operatorapi.OperationList, operatorapi.Operation]{
		entries: "operations",
		prepare: func(ctx context.Context, client *brokerclient.Client) (err error) {
			if stuck && state.chosen != "" && state.chosen != string(process.InProgress) {
				return usage("--stuck and --state cannot be combined: stuck operations are always in progress")
			}

			filter.State = operatorapi.OperationState(state.chosen)
			if stuck {
				filter.State = operatorapi.OperationStateInProgress
			}

			filter.InstanceID, err = instanceID(ctx, client, instance)

			return err
		},
		fetch: func(ctx context.Context, client *brokerclient.Client, page pageQuery) (operatorapi.OperationList, error) {
			filter.Cursor, filter.PageSize, filter.Total = page.cursor, page.size, page.total

			return client.ListOperations(ctx, filter)
		},
		parts: func(list *operatorapi.OperationList) (*operatorapi.Page, *[]operatorapi.Operation) {
			return &list.Page, &list.Data
		},
		keep: func() func(operatorapi.Operation) bool {
			if !stuck {
				return nil
			}

			return func(operation operatorapi.Operation) bool { return explain.Stuck(operation, session.Clock.Now()) }
		},
		id: func(operation operatorapi.Operation) string { return operation.ID },
		table: output.Rows{
			Head: []string{
				"OPERATION", strings.ToUpper(session.noun()), "KIND", headState, "STAGE", "STEP", "AGE", "DURATION", "PROBLEM",
				strings.ToUpper(session.noun()) + " ID", "ORDERED BY",
			},
			WideColumns: 2,  // the ID of the instance and the user
			Cut:         60, // keeps a table with a long problem readable
			None:        "No operations found.",
		},
		row:     session.operationRow,
		columns: operationColumns(),
	}.command(session, "List operations, newest first", true)

	flags := command.Flags()
	flags.StringVar(&instance, session.noun(), "", "only operations of the "+session.noun()+" with this ID or name")
	flags.StringVar(&filter.Kind, "kind", "", "only operations of this kind: "+strings.Join(session.operationKinds(), ", "))
	flags.Var(&state, "state", "only operations in this state: "+strings.Join(state.values, ", "))
	flags.BoolVar(&stuck, "stuck", false,
		"only operations in progress that are delayed by an error, that no worker claims, or that started at least an hour ago")
	complete(command, "state", state.values...)
	complete(command, "kind", session.operationKinds()...)
	completeBy(command, session.noun(), session.completeInstance)

	if session.provisioner {
		flags.StringVar(&filter.Account, "account", "", "only operations on runtimes of this global account")
		flags.StringVar(&filter.Region, "region", "", "only operations on runtimes in this region of the provider")
	}

	return command
}

// withPercent appends the completed percentage to a state, unless the percentage is 0.
func withPercent(state string, percent int) string {
	if percent == 0 {
		return state
	}

	return fmt.Sprintf("%s, %d %%", state, percent)
}

// operationRow returns the table row of an operation. If the instance has no name, for example because it was deleted, the row
// shows its ID. The duration is the time from the start of the operation to its end, or to now.
func (s *session) operationRow(operation operatorapi.Operation) []string {
	var duration string

	if start := operation.StartedAt; !start.IsZero() {
		end := operation.FinishedAt
		if end.IsZero() {
			end = s.Clock.Now()
		}

		duration = output.Duration(end.Sub(start))
	}

	return []string{
		operation.ID, cmp.Or(operation.InstanceName, operation.InstanceID), operation.Kind, withPercent(string(operation.State), operation.Percent),
		operation.Stage, operation.Step, s.age(operation.CreatedAt), duration, explain.ProblemText(operation.Problem),
		operation.InstanceID, operation.OrderedBy,
	}
}
