package orchestration

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/google/uuid"

	"github.com/environment-broker/environment-broker/internal/environment"
	"github.com/environment-broker/environment-broker/internal/fleet"
	"github.com/environment-broker/environment-broker/process"
	"github.com/environment-broker/environment-broker/storage"
	"github.com/environment-broker/environment-broker/storage/instances"
	"github.com/environment-broker/environment-broker/storage/orchestrations"
)

// planPage is the number of instances that one query reads.
const planPage = 1000

// Plan implements orchestrating.Orchestrations. It decrypts nothing. Whether an instance can be upgraded is checked again when its
// upgrade starts.
func (c Conductor) Plan(ctx context.Context, by process.Record) error {
	id, _ := environment.OrchestrationOf(by.InstanceID)

	orchestration, err := c.Orchestrations.Get(ctx, c.DB.Reader(), id)
	if err != nil || orchestration.State != environment.OrchestrationPending {
		return explain(err)
	}

	targets, err := c.targets(ctx, orchestration)
	if err != nil {
		return explain(err)
	}

	return c.conduct(ctx, by, func(tx storage.Tx, orchestration environment.Orchestration) error {
		// It may have been canceled, or planned by a run whose result was lost.
		if orchestration.State != environment.OrchestrationPending {
			return nil
		}

		if err := c.Orchestrations.AddTargets(ctx, tx, targets); err != nil {
			return err
		}

		scheduled := 0

		for _, target := range targets {
			if target.State == environment.TargetPending {
				scheduled++
			}
		}

		return c.Orchestrations.SetState(ctx, tx, id, environment.OrchestrationInProgress,
			fmt.Sprintf("Scheduled %d operations", scheduled), c.Clock.Now())
	})
}

// targets returns the selected instances.
func (c Conductor) targets(ctx context.Context, orchestration environment.Orchestration) ([]environment.Target, error) {
	var (
		targets  []environment.Target
		selector = fleet.NewSelector(orchestration.Parameters.Targets)
		filter   = instances.Filter{Limit: planPage}
	)

	for {
		page, err := c.Instances.List(ctx, filter)
		if err != nil {
			return nil, err
		}

		for _, listed := range page {
			if selector.Selects(candidate(listed.Instance)) {
				targets = append(targets, c.target(orchestration, listed))
			}
		}

		if len(page) < planPage {
			return targets, nil
		}

		last := page[len(page)-1].Instance
		filter.Before, filter.BeforeID = last.CreatedAt, last.ID
	}
}

func candidate(instance environment.Instance) fleet.Candidate {
	return fleet.Candidate{
		GlobalAccount: instance.GlobalAccountID, SubAccount: instance.SubAccountID, Region: instance.Region, RuntimeID: instance.RuntimeID,
		PlanName: instance.PlanName, Shoot: instance.ShootName, InstanceID: instance.ID,
	}
}

// target returns the target for the instance, which is left out if there is nothing to upgrade.
func (c Conductor) target(orchestration environment.Orchestration, listed instances.Listed) environment.Target {
	target := environment.Target{
		OrchestrationID: orchestration.ID, InstanceID: listed.Instance.ID, OperationID: uuid.NewString(), State: environment.TargetPending,
		Provider: listed.Instance.Provider, Region: listed.Instance.Region, NotBefore: orchestration.Parameters.Strategy.ScheduleTime,
	}

	if why := c.obstacle(orchestration.Kind, listed); why != "" {
		target.State, target.Description = environment.TargetLeftOut, why
	}

	return target
}

// obstacle returns why the instance cannot be upgraded, or an empty string.
func (c Conductor) obstacle(kind string, listed instances.Listed) string {
	instance, newest := listed.Instance, listed.Operation
	plan, known := c.Catalog.ByID(instance.PlanID)

	switch {
	case instance.Provider == "":
		return "The cluster belongs to the tenant, who also upgrades it."
	case slices.Contains([]string{environment.KindDeprovision, environment.KindSuspend}, newest.Kind):
		return "The runtime is being removed or was removed."
	case instance.Suspended:
		return "The instance is suspended and has no runtime."
	case slices.Contains([]string{environment.KindProvision, environment.KindResume}, newest.Kind) && newest.State != process.Succeeded,
		instance.RuntimeID == "":
		return "The runtime is not complete."
	case !known:
		return fmt.Sprintf("The catalog no longer has plan %s.", instance.PlanName)
	case kind == environment.KindUpgradeKyma && !plan.InstallsKyma():
		return fmt.Sprintf("Plan %s does not install Kyma.", instance.PlanName)
	default:
		return ""
	}
}

// unfinished returns the number of targets that have not ended.
func unfinished(stats map[string]int) int {
	return stats[string(environment.TargetPending)] + stats[orchestrations.StateRetrying] + stats[string(process.InProgress)] +
		stats[string(process.Canceling)]
}

// describe returns the numbers of targets as a text, such as "2 succeeded, 1 failed".
func describe(stats map[string]int) string {
	var parts []string

	for _, state := range []string{"succeeded", "failed", "canceled", "canceling", "in progress", "retrying", "pending", "left out"} {
		if stats[state] > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", stats[state], state))
		}
	}

	if len(parts) == 0 {
		return "No instance was selected"
	}

	return strings.Join(parts, ", ")
}
