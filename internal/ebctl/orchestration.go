package ebctl

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/dustin/go-humanize/english"
	"github.com/spf13/cobra"

	"github.com/environment-broker/environment-broker/internal/ebctl/brokerclient"
	"github.com/environment-broker/environment-broker/internal/ebctl/output"
	"github.com/environment-broker/environment-broker/internal/environment"
	"github.com/environment-broker/environment-broker/internal/environment/fleet"
	"github.com/environment-broker/environment-broker/internal/operatorapi"
	"github.com/environment-broker/environment-broker/internal/operatorapi/timetext"
)

func newOrchestrationCommand(session *session) *cobra.Command {
	return group("orchestration", "Upgrade many instances",
		newOrchestrationStartCommand(session),
		newOrchestrationListCommand(session),
		newOrchestrationGetCommand(session),
		newOrchestrationTargetsCommand(session),
		newOrchestrationExplainCommand(session),
		newOrchestrationPauseCommand(session),
		newOrchestrationResumeCommand(session),
		newOrchestrationCancelCommand(session),
		newOrchestrationRetryCommand(session),
		newOrchestrationUndoCommand(session),
	)
}

// orchestrationStates returns the suggested values of the --state flag for orchestrations.
func orchestrationStates() []string {
	return []string{
		string(environment.OrchestrationPlanned), string(environment.OrchestrationExpired), string(environment.OrchestrationPending),
		string(environment.OrchestrationInProgress), string(environment.OrchestrationRetrying),
		string(environment.OrchestrationPaused), string(environment.OrchestrationGated), string(environment.OrchestrationCanceling),
		string(environment.OrchestrationCanceled), string(environment.OrchestrationSucceeded),
		string(environment.OrchestrationFailed),
	}
}

// targetStates returns the suggested values of the --state flag for targets, in the order in which they are shown.
func targetStates() []string {
	return []string{"succeeded", "failed", "canceled", "canceling", "in progress", "retrying", "pending", "left out"}
}

// numbered decodes a cursor that setNext has encoded: it returns the page number and the number of entries before the page. It is
// for endpoints that have page numbers instead of cursors.
func (p pageQuery) numbered() (number, before int) {
	if _, err := fmt.Sscan(p.cursor, &number, &before); err != nil {
		return 1, 0 // the first page
	}

	return number, before
}

// setNext sets the cursor that numbered decodes, unless the page is the last one. It removes the total unless the query requests it.
func (p pageQuery) setNext(page *operatorapi.Page) {
	number, before := p.numbered()
	if total := page.TotalCount; total != nil && page.Count > 0 && before+page.Count < *total {
		page.Cursor = fmt.Sprint(number+1, " ", before+page.Count)
	}

	if !p.total {
		page.TotalCount = nil
	}
}

func newOrchestrationListCommand(session *session) *cobra.Command {
	var state string

	command := orchestrationLister(session, &state).command(session, "List orchestrations, newest first", true)

	command.Flags().StringVar(&state, "state", "", "only orchestrations in these states, separated by commas: "+strings.Join(orchestrationStates(), ", "))
	complete(command, "state", orchestrationStates()...)

	return command
}

// orchestrationLister returns a lister for the orchestrations in the given states. *state contains the states, separated by commas,
// and is read when the command runs. If *state is empty, all orchestrations are listed.
func orchestrationLister(session *session, state *string) lister[operatorapi.OrchestrationList, operatorapi.Orchestration] {
	return lister[operatorapi.OrchestrationList, operatorapi.Orchestration]{
		entries: "orchestrations",
		fetch: func(ctx context.Context, client *brokerclient.Client, page pageQuery) (operatorapi.OrchestrationList, error) {
			number, _ := page.numbered()
			list, err := client.ListOrchestrations(ctx, operatorapi.ListOrchestrationsParams{State: *state, Page: number, PageSize: page.size})
			page.setNext(&list.Page)

			return list, err
		},
		parts: func(list *operatorapi.OrchestrationList) (*operatorapi.Page, *[]operatorapi.Orchestration) {
			return &list.Page, &list.Data
		},
		id:      func(each operatorapi.Orchestration) string { return each.OrchestrationID },
		columns: orchestrationColumns(),
		table: output.Rows{
			Head:        []string{"ORCHESTRATION", "TYPE", headState, "AGE", "ORDERED BY", "DESCRIPTION", "DRY RUN"},
			WideColumns: 1,  // whether it is a dry run
			Cut:         80, // keeps a table with a long description readable
			None:        "No orchestrations found.",
		},
		row: func(each operatorapi.Orchestration) []string {
			return []string{
				each.OrchestrationID, each.Type, withPercent(each.State, each.Percent), session.age(each.CreatedAt), each.OrderedBy, each.Description,
				strconv.FormatBool(each.Parameters.DryRun),
			}
		},
	}
}

func newOrchestrationTargetsCommand(session *session) *cobra.Command {
	var id, state string

	command := lister[operatorapi.OrchestrationOperationList, operatorapi.OrchestrationOperation]{
		entries: "the targets of the orchestration",
		fetch: func(ctx context.Context, client *brokerclient.Client, page pageQuery) (operatorapi.OrchestrationOperationList, error) {
			number, _ := page.numbered()
			list, err := client.ListOrchestrationOperations(ctx, id, operatorapi.ListOrchestrationOperationsParams{
				State: state, Page: number, PageSize: page.size,
			})
			page.setNext(&list.Page)

			return list, err
		},
		parts: func(list *operatorapi.OrchestrationOperationList) (*operatorapi.Page, *[]operatorapi.OrchestrationOperation) {
			return &list.Page, &list.Data
		},
		id:      func(each operatorapi.OrchestrationOperation) string { return each.OperationID },
		columns: targetColumns(),
		table: output.Rows{
			Head:        []string{headInstance, headState, "PLAN", "SHOOT", "OPERATION", "DESCRIPTION", "ACCOUNT", "REGION", "FROM", "TO", "WAVE", "WINDOW", "NOT BEFORE", "CHOSEN BY"},
			WideColumns: 8,  // the account and the columns after it
			Cut:         60, // keeps a table with a long description readable
			None:        "No targets found.",
		},
		row: func(each operatorapi.OrchestrationOperation) []string {
			return []string{
				each.InstanceID, each.State, each.ServicePlanName, each.ShootName, each.OperationID, each.Description, each.GlobalAccountID,
				each.Region, each.FromVersion, each.ToVersion, number(each.Wave), each.MaintenanceWindow,
				output.Time(each.MaintenanceWindowBegin), each.ChosenBy,
			}
		},
	}.command(session, "List the instances of an orchestration with their upgrades", true)

	command.Use = "targets ORCHESTRATION"
	command.Long = command.Short + ".\n\nTo list instances that were selected but cannot be upgraded, use --state 'left out'. A target that has not " +
		"started already shows the ID of its future operation. 'ebctl operation explain' explains an upgrade."
	command.Args = func(command *cobra.Command, args []string) error {
		if err := arguments("ORCHESTRATION")(command, args); err != nil {
			return err
		}

		id = args[0]

		return nil
	}
	command.ValidArgsFunction = session.completeOrchestration
	command.Flags().StringVar(&state, "state", "", "only targets in these states, separated by commas: "+strings.Join(targetStates(), ", "))
	complete(command, "state", targetStates()...)

	return command
}

// onOrchestration sets the arguments, the shell completion and the run function of a command whose first argument is the ID of an
// orchestration.
func (s *session) onOrchestration(command *cobra.Command, args cobra.PositionalArgs,
	run func(ctx context.Context, client *brokerclient.Client, id string, args []string) error,
) *cobra.Command {
	command.Args, command.ValidArgsFunction = args, s.completeOrchestration
	command.RunE = s.withClient(func(ctx context.Context, client *brokerclient.Client, args []string) error {
		return run(ctx, client, args[0], args[1:])
	})

	return command
}

// completeOrchestration returns the IDs of the newest orchestrations for shell completion.
func (s *session) completeOrchestration(command *cobra.Command, args []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
	client, err := s.client()
	if err != nil || len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}

	list, err := client.ListOrchestrations(command.Context(), operatorapi.ListOrchestrationsParams{})
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}

	found := make([]cobra.Completion, 0, len(list.Data))
	for _, each := range list.Data {
		found = append(found, cobra.CompletionWithDesc(each.OrchestrationID, each.Type+" "+each.State))
	}

	return found, cobra.ShellCompDirectiveNoFileComp
}

func newOrchestrationGetCommand(session *session) *cobra.Command {
	var (
		wait  bool
		limit time.Duration
	)

	command := session.onOrchestration(&cobra.Command{
		Use:   "get ORCHESTRATION",
		Short: "Show an orchestration and how many targets are in each state, or wait for its end",
		Long: "Show an orchestration and how many targets are in each state, or wait for its end.\n\n" +
			"The wait also ends if the failure gate stops the orchestration. Interrupting the wait does not stop the orchestration.",
		Example: "  ebctl orchestration get 1b6c2a54-3a49-4a3e-9a02-0f5f7b6f1c11 --wait",
	}, arguments("ORCHESTRATION"), func(ctx context.Context, client *brokerclient.Client, id string, _ []string) error {
		if !wait {
			return session.printOrchestration(ctx, client, id)
		}

		found, failed := session.waitForOrchestration(ctx, client, id, limit)
		if found.OrchestrationID == "" {
			return failed
		}

		return cmp.Or(failed, session.print(found, orchestrationText(found, session.Clock.Now())))
	})

	command.Flags().BoolVar(&wait, "wait", false, "wait until the orchestration has ended")
	command.Flags().Var(timeLimitOf(&limit, 0), "wait-timeout", "maximum duration of the wait; 0 means no limit")

	return command
}

func (s *session) printOrchestration(ctx context.Context, client *brokerclient.Client, id string) error {
	found, err := client.GetOrchestration(ctx, id)
	if err != nil {
		return fmt.Errorf("reading orchestration %s: %w", id, err)
	}

	return s.print(found, orchestrationText(found, s.Clock.Now()))
}

func orchestrationText(shown operatorapi.Orchestration, now time.Time) output.Text {
	fields := output.Fields{
		{Name: "Orchestration", Value: shown.OrchestrationID},
		{Name: "Type", Value: shown.Type},
		{Name: "State", Value: shown.State},
		{Name: "Description", Value: shown.Description},
		{Name: "Undoes", Value: shown.Undoes},
		{Name: "Progress", Value: timetext.Progress(shown.Percent, shown.EstimatedEnd.Sub(now), shown.LatestEnd.Sub(now))},
		{Name: "Ordered by", Value: shown.OrderedBy},
		{Name: "Applied by", Value: shown.AppliedBy},
		{Name: "Created", Value: output.Time(shown.CreatedAt)},
		{Name: "Applied", Value: output.Time(shown.AppliedAt)},
		{Name: "Expires", Value: output.Time(shown.ExpiresAt)},
		{Name: "Changed", Value: output.Time(shown.UpdatedAt)},
		{Name: "Not before", Value: output.Time(shown.Parameters.Strategy.ScheduleTime)},
		{Name: "Deadline", Value: output.Time(shown.Parameters.Strategy.Deadline)},
	}

	if shown.Parameters.Strategy.MaintenanceWindow {
		fields = append(fields, output.Field{Name: "Windows", Value: "only in the maintenance windows of the instances"})
	}

	if limits := shown.Parameters.Strategy.Parallel; limits != nil {
		fields = append(fields, output.Field{Name: "Workers", Value: strconv.Itoa(limits.Workers)})
	}

	for _, wave := range shown.Waves {
		if len(shown.Parameters.Strategy.Waves) > 0 {
			fields = append(fields, output.Field{Name: fmt.Sprintf("Wave %d", wave.Wave), Value: waveText(shown, wave)})
		}
	}

	if gate := shown.Parameters.Strategy.FailureGate; gate != nil {
		fields = append(fields, output.Field{Name: "Failure gate", Value: gateText(*gate)})
	}

	if shown.Parameters.DryRun {
		fields = append(fields, output.Field{Name: "Dry run", Value: "true"})
	}

	return output.WithID{Text: append(fields, output.Field{Name: "Targets", Value: statsText(shown.OperationStats)}), ID: shown.OrchestrationID}
}

// number returns a number as text, and an empty string for 0.
func number(value int) string {
	if value == 0 {
		return ""
	}

	return strconv.Itoa(value)
}

// waveText returns how many targets of a wave are in each state, and the soak time that follows the wave.
func waveText(shown operatorapi.Orchestration, wave operatorapi.OrchestrationWave) string {
	text := statsText(wave.OperationStats)
	if wave.Percent > 0 {
		text = fmt.Sprintf("%d %%, %s", wave.Percent, text)
	}

	switch waves := shown.Parameters.Strategy.Waves; {
	case wave.Wave == shown.Wave && !shown.SoakUntil.IsZero():
		return text + ", soaks until " + output.Time(shown.SoakUntil)
	case wave.Wave <= len(waves) && waves[wave.Wave-1].Soak != "":
		return text + ", then " + waves[wave.Wave-1].Soak + " of soak time"
	default:
		return text
	}
}

// gateText describes when the failure gate stops an orchestration.
func gateText(gate fleet.FailureGate) string {
	var limits []string

	if gate.Failures > 0 {
		limits = append(limits, english.Plural(gate.Failures, "failure", ""))
	}

	if gate.Percentage > 0 {
		limits = append(limits, fmt.Sprintf("%d %% failures", gate.Percentage))
	}

	return strings.Join(limits, " or ")
}

// statsText returns the number of targets in each state, such as "2 succeeded, 1 failed".
func statsText(stats map[string]int) string {
	var parts []string

	for _, state := range targetStates() {
		if stats[state] > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", stats[state], state))
		}
	}

	return strings.Join(parts, ", ")
}

func newOrchestrationCancelCommand(session *session) *cobra.Command {
	return addYes(session, session.onOrchestration(&cobra.Command{
		Use:   "cancel ORCHESTRATION",
		Short: "Cancel an orchestration",
		Long: "Cancel an orchestration: no further upgrades start. Those in progress run to completion.\n\n" +
			"The command needs the operator role. The audit log records your name.",
	}, arguments("ORCHESTRATION"), func(ctx context.Context, client *brokerclient.Client, id string, _ []string) error {
		if err := session.confirm(ctx, "Cancel orchestration %s?", id); err != nil {
			return err
		}

		if _, err := client.CancelOrchestration(ctx, id); err != nil {
			return fmt.Errorf("canceling orchestration %s: %w", id, err)
		}

		return session.printOrchestration(ctx, client, id)
	}))
}

func newOrchestrationRetryCommand(session *session) *cobra.Command {
	var immediate bool

	command := session.onOrchestration(&cobra.Command{
		Use:   "retry ORCHESTRATION [OPERATION...]",
		Short: "Retry the failed upgrades of an orchestration, by default all of them",
		Long: "Retry the failed upgrades of an orchestration, by default all of them.\n\n" +
			"Each failed target gets a new operation. Upgrades that were retried before, or that a later upgrade of the instance has superseded, " +
			"are not repeated. If the orchestration stopped because of an internal error, the command also resumes the orchestration. " +
			"The command needs the operator role. The audit log records your name.",
	}, atLeast("ORCHESTRATION"), func(ctx context.Context, client *brokerclient.Client, id string, operations []string) error {
		retried, err := client.RetryOrchestration(ctx, id, operatorapi.OrchestrationRetry{OperationIDs: operations, Immediate: immediate})
		if err != nil {
			return fmt.Errorf("retrying orchestration %s: %w", id, err)
		}

		slices.Sort(retried.RetryShoots)

		return session.print(retried, output.WithID{ID: id, Text: output.Fields{
			{Name: "Orchestration", Value: id},
			{Name: "Result", Value: retried.Msg},
			{Name: "Shoots", Value: strings.Join(retried.RetryShoots, ", ")},
			{Name: "Retried before, or superseded", Value: strings.Join(retried.OldOperations, ", ")},
			{Name: "Not failed", Value: strings.Join(retried.InvalidOperations, ", ")},
		}})
	})
	command.Flags().BoolVar(&immediate, "immediate", false, "start immediately, even outside the maintenance windows of the instances")

	return command
}
