package ebctl

import (
	"cmp"
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/dustin/go-humanize/english"
	"github.com/spf13/cobra"

	"github.com/environment-broker/environment-broker/internal/ebctl/brokerclient"
	"github.com/environment-broker/environment-broker/internal/ebctl/output"
	"github.com/environment-broker/environment-broker/internal/environment"
	"github.com/environment-broker/environment-broker/internal/operatorapi"
)

// shownPlan is a plan with the first page of its targets, and the first page of the instances that are left out.
type shownPlan struct {
	Plan    operatorapi.Orchestration            `json:"plan"`
	Targets []operatorapi.OrchestrationOperation `json:"targets"`
	LeftOut []operatorapi.OrchestrationOperation `json:"leftOut"`
}

func newUpgradePlanCommand(session *session) *cobra.Command {
	return group("plan", "Plan an upgrade of Kyma or the clusters of many instances",
		newUpgradePlanOneCommand(session, "kyma", "Kyma", (*brokerclient.Client).PlanKyma),
		newUpgradePlanOneCommand(session, "cluster", "the clusters", (*brokerclient.Client).PlanCluster),
	)
}

func newUpgradePlanOneCommand(session *session, use, what string,
	send func(*brokerclient.Client, context.Context, operatorapi.OrchestrationParameters) (operatorapi.AcceptedOrchestration, error),
) *cobra.Command {
	var given orchestrationFlags

	command := &cobra.Command{
		Use:   use,
		Short: "Plan an upgrade of " + what + " of many instances",
		Long: "Plan an upgrade of " + what + " of many instances.\n\n" +
			"The broker only stores the plan. To start the upgrades, run 'ebctl upgrade apply' within seven days. " + helpSelection +
			"The command needs the operator role. The audit log records your name.",
		Example: "  ebctl upgrade plan " + use + " --plan aws --region '^eu-' --workers 10 --wave 5%:2h --wave ring=early:24h --failure-gate 10%\n" +
			"  ebctl upgrade plan " + use + " --parameters @order.yaml -o name",
		Args: arguments(),
		RunE: session.withClient(func(ctx context.Context, client *brokerclient.Client, _ []string) error {
			parameters, err := given.parameters(session, use)
			if err != nil {
				return err
			}

			if err := given.resolve(ctx, client, parameters.Targets); err != nil {
				return err
			}

			plan, err := send(client, ctx, parameters)
			if err != nil {
				return fmt.Errorf("planning upgrades: %w", err)
			}

			return session.printPlan(ctx, client, plan.OrchestrationID)
		}),
	}
	given.add(session, command)

	return command
}

func newUpgradePlansCommand(session *session) *cobra.Command {
	state := string(environment.OrchestrationPlanned)

	command := orchestrationLister(session, &state).command(session, "List the plans that can be applied, newest first", true)
	command.Use = "plans"
	command.Long = command.Short + ".\n\n'ebctl orchestration list' also lists plans that were applied or have expired."

	return command
}

func newUpgradeShowCommand(session *session) *cobra.Command {
	return session.onOrchestration(&cobra.Command{
		Use:   "show PLAN",
		Short: "Show a plan with its instances",
	}, arguments("PLAN"), func(ctx context.Context, client *brokerclient.Client, id string, _ []string) error {
		return session.printPlan(ctx, client, id)
	})
}

func newUpgradeApplyCommand(session *session) *cobra.Command {
	var wanted operatorapi.PlanApplication

	command := addYes(session, session.onOrchestration(&cobra.Command{
		Use:   "apply PLAN",
		Short: "Start the upgrades of a plan",
		Long: "Start the upgrades of a plan.\n\n" +
			"The command leaves out and lists instances that have changed since the plan was made. With --strict, it starts nothing if there are such instances, " +
			"and exits with code 4. 'ebctl orchestration cancel' discards a plan.\n\n" +
			"The command needs the operator role. The audit log records your name.",
	}, arguments("PLAN"), func(ctx context.Context, client *brokerclient.Client, id string, _ []string) error {
		plan, err := client.GetOrchestration(ctx, id)
		if err != nil {
			return fmt.Errorf("reading plan %s: %w", id, err)
		}

		if !plan.Parameters.DryRun {
			if err := session.confirm(ctx, "Upgrade %s?", english.Plural(plan.OperationStats[string(environment.TargetPending)], "instance", "")); err != nil {
				return err
			}
		}

		applied, err := client.ApplyOrchestration(ctx, id, wanted)
		if err != nil {
			return fmt.Errorf("applying plan %s: %w", id, err)
		}

		changed := output.Rows{Head: headLeftOut()}
		for _, each := range applied.Changed {
			changed.Rows = append(changed.Rows, []string{each.InstanceID, each.Description})
		}

		texts := paragraphs{output.Fields{{Name: "Orchestration", Value: id}, {Name: "Changed since planned", Value: strconv.Itoa(applied.ChangedCount)}}}
		if len(changed.Rows) > 0 {
			texts = append(texts, changed)
		}

		return session.print(applied, output.WithID{ID: id, Text: texts})
	}))
	command.Flags().BoolVar(&wanted.Strict, "strict", false, "start nothing if instances have changed since the plan was made")

	return command
}

// headLeftOut returns the headers of the table of instances that are left out.
func headLeftOut() []string { return []string{"LEFT OUT", "BECAUSE"} }

func (s *session) printPlan(ctx context.Context, client *brokerclient.Client, id string) error {
	var (
		shown shownPlan
		total = map[string]int{}
		err   error
	)

	if shown.Plan, err = client.GetOrchestration(ctx, id); err != nil {
		return fmt.Errorf("reading plan %s: %w", id, err)
	}

	for state, entries := range map[string]*[]operatorapi.OrchestrationOperation{"": &shown.Targets, string(environment.TargetLeftOut): &shown.LeftOut} {
		list, err := client.ListOrchestrationOperations(ctx, id, operatorapi.ListOrchestrationOperationsParams{State: state})
		if err != nil {
			return fmt.Errorf("reading the targets of plan %s: %w", id, err)
		}

		*entries = list.Data

		if list.TotalCount != nil {
			total[state] = *list.TotalCount
		}
	}

	for state, entries := range map[string]int{"": len(shown.Targets), string(environment.TargetLeftOut): len(shown.LeftOut)} {
		if more := total[state] - entries; more > 0 {
			fmt.Fprintf(s.Err, "Not listed: %s (%s). Use 'ebctl orchestration targets %s --all-pages' to list all.\n",
				english.Plural(more, "more instance", ""), cmp.Or(state, "to be upgraded"), id)
		}
	}

	return s.print(shown, output.WithID{ID: id, Text: planText(shown, s.Clock.Now())})
}

func planText(shown shownPlan, now time.Time) output.Text {
	targets := output.Rows{Head: []string{headInstance, "WAVE", "PLAN", "REGION", "SHOOT", "FROM", "TO", "NOT BEFORE", "NOT AFTER", "ACCOUNT"}, None: "There is nothing to upgrade."}
	for _, each := range shown.Targets {
		targets.Rows = append(targets.Rows, []string{
			each.InstanceID, number(each.Wave), each.ServicePlanName, each.Region, each.ShootName, cmp.Or(each.FromVersion, "-"),
			cmp.Or(each.ToVersion, "default"),
			output.Time(each.MaintenanceWindowBegin), output.Time(each.MaintenanceWindowEnd), each.GlobalAccountID,
		})
	}

	left := output.Rows{Head: headLeftOut()}
	for _, each := range shown.LeftOut {
		left.Rows = append(left.Rows, []string{each.InstanceID, each.Description})
	}

	texts := paragraphs{orchestrationText(shown.Plan, now), targets}
	if len(left.Rows) > 0 {
		texts = append(texts, left)
	}

	return texts
}
