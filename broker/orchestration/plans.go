package orchestration

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/dustin/go-humanize/english"

	"github.com/environment-broker/environment-broker/broker/upgrade"
	"github.com/environment-broker/environment-broker/internal/audit"
	"github.com/environment-broker/environment-broker/internal/environment"
	"github.com/environment-broker/environment-broker/internal/environment/fleet"
	"github.com/environment-broker/environment-broker/internal/failure"
	"github.com/environment-broker/environment-broker/storage"
	"github.com/environment-broker/environment-broker/storage/auditlog"
)

// maxNamed is the maximum number of instances that an error names.
const maxNamed = 10

// CreatePlan stores the plan of an orchestration and returns its ID. kind is one of environment.UpgradeKinds. The plan contains
// the targets with the versions before and after their upgrades. Nothing starts before Apply. The error is of kind Invalid if a
// parameter is invalid.
func (o Orders) CreatePlan(ctx context.Context, kind string, parameters fleet.Parameters) (id string, err error) {
	now := o.Clock.Now()

	parameters, err = completed(kind, parameters, now)
	if err != nil {
		return "", err
	}

	plan := newOrchestration(ctx, kind, parameters, now)

	targets, err := o.Planner.targets(ctx, plan)
	if err != nil {
		return "", err
	}

	plan.State, plan.Description = environment.OrchestrationPlanned, "Planned "+describeTargets(targets)

	return plan.ID, o.change(ctx, func(tx storage.Tx) error {
		if err := o.Orchestrations.Insert(ctx, tx, plan); err != nil {
			return err
		}

		if err := o.Orchestrations.AddTargets(ctx, tx, targets); err != nil {
			return err
		}

		return o.record(ctx, tx, auditlog.Entry{
			Action: auditlog.ActionPlan, OperationID: plan.ID,
			After: auditlog.Fields{"kind": kind, "dryRun": parameters.DryRun, "targets": parameters.Targets, "scheduleTime": parameters.Strategy.ScheduleTime},
		})
	})
}

// describeTargets describes how many targets a plan upgrades and leaves out.
func describeTargets(targets []environment.Target) string {
	left := 0

	for _, target := range targets {
		if target.State == environment.TargetLeftOut {
			left++
		}
	}

	return fmt.Sprintf("%s; %s left out", english.Plural(len(targets)-left, "upgrade", ""), english.Plural(left, "selected instance", ""))
}

// Changed is a target that has changed since the plan was made.
type Changed struct{ InstanceID, Why string }

// Apply starts a plan. It leaves out the targets that have changed since the plan was made, and returns them. If strict is set
// and a target has changed, Apply starts nothing. A target that changes after Apply is detected when its upgrade starts.
//
// The error is of kind NotFound if there is no such plan, and Conflict if the plan was applied or canceled, if the plan has
// expired or its deadline has passed, or if targets have changed and strict is set.
func (o Orders) Apply(ctx context.Context, id string, strict bool) ([]Changed, error) {
	plan, err := o.Orchestrations.Get(ctx, o.DB.Reader(), id)
	if err != nil {
		return nil, known(err)
	}

	if err := o.checkPlan(plan); err != nil {
		return nil, err
	}

	changed, moved, err := o.changes(ctx, plan)
	if err != nil {
		return nil, err
	}

	if strict && len(changed) > 0 {
		return nil, failure.New(failure.Conflict,
			"%s Nothing was started. Make a new plan, or apply this one without strict to leave them out.", named(changed))
	}

	return changed, o.change(ctx, func(tx storage.Tx) error {
		locked, err := o.Orchestrations.Lock(ctx, tx, id)
		if err != nil {
			return err
		}

		if err := o.checkPlan(locked); err != nil {
			return err
		}

		if err := o.leaveOut(ctx, tx, id, changed); err != nil {
			return err
		}

		if err := o.moveWindows(ctx, tx, moved); err != nil {
			return err
		}

		if err := o.Orchestrations.Apply(ctx, tx, id, audit.ActorOf(ctx).Name(), "Plan applied", o.Clock.Now()); err != nil {
			return err
		}

		if err := o.conduct(ctx, tx, id, "plan applied"); err != nil {
			return err
		}

		return o.record(ctx, tx, auditlog.Entry{
			Action: auditlog.ActionApply, OperationID: id, After: auditlog.Fields{"strict": strict, "changed": len(changed)},
		})
	})
}

// checkPlan returns an error unless the plan can be applied.
func (o Orders) checkPlan(plan environment.Orchestration) error {
	switch {
	case plan.State == environment.OrchestrationExpired,
		plan.State == environment.OrchestrationPlanned && !o.Clock.Now().Before(plan.CreatedAt.Add(environment.PlanLifetime)):
		return failure.New(failure.Conflict, "The plan has expired: it is older than %d days. Make a new one.", int(environment.PlanLifetime.Hours()/24))
	case plan.State == environment.OrchestrationPlanned && !plan.Parameters.Strategy.Deadline.IsZero() &&
		!o.Clock.Now().Before(plan.Parameters.Strategy.Deadline):
		return failure.New(failure.Conflict, "The deadline of the plan has passed. Make a new one.")
	case plan.State == environment.OrchestrationPlanned:
		return nil
	case !plan.AppliedAt.IsZero():
		return failure.New(failure.Conflict, "The plan was already applied. The orchestration is %s.", plan.State)
	default:
		return failure.New(failure.Conflict, "The orchestration is %s and not a plan.", plan.State)
	}
}

// changes selects the targets of a plan again. It returns the pending targets that would now be left out or get another version,
// each with the reason, and the pending targets whose maintenance windows have changed.
func (o Orders) changes(ctx context.Context, plan environment.Orchestration) (changed []Changed, moved []environment.Target, err error) {
	planned, err := o.Orchestrations.Pending(ctx, o.DB.Reader(), plan.ID)
	if err != nil {
		return nil, nil, err
	}

	selected, err := o.Planner.targets(ctx, plan)
	if err != nil {
		return nil, nil, err
	}

	now := make(map[string]environment.Target, len(selected))
	for _, target := range selected {
		now[target.InstanceID] = target
	}

	for _, before := range planned {
		after, found := now[before.InstanceID]
		if why := difference(before, after, found); why != "" {
			changed = append(changed, Changed{before.InstanceID, why})
		}
	}

	return changed, windowChanges(planned, selected), nil
}

// difference describes how a target has changed, or returns an empty string if it has not. found reports whether the target is
// still selected.
func difference(before, after environment.Target, found bool) string {
	planned, now := upgrade.Versions{From: before.FromVersion, To: before.ToVersion}, upgrade.Versions{From: after.FromVersion, To: after.ToVersion}

	switch {
	case !found:
		return "The instance was deleted, or the order no longer selects it."
	case after.State == environment.TargetLeftOut:
		return after.Description
	case planned != now:
		return fmt.Sprintf("The upgrade was planned %s, and would now be %s.", planned, now)
	default:
		return ""
	}
}

// named returns a sentence that names the first maxNamed changed targets.
func named(changed []Changed) string {
	names := make([]string, 0, maxNamed)
	for _, each := range changed[:min(len(changed), maxNamed)] {
		names = append(names, fmt.Sprintf("%s (%s)", each.InstanceID, strings.TrimSuffix(each.Why, ".")))
	}

	text := fmt.Sprintf("%s changed since the plan was made: %s", english.Plural(len(changed), "instance", ""), strings.Join(names, ", "))
	if more := len(changed) - len(names); more > 0 {
		text += fmt.Sprintf(", and %d more", more)
	}

	return text + "."
}

// leaveOut leaves the changed targets out of the orchestration, with one SQL statement for each reason.
func (o Orders) leaveOut(ctx context.Context, tx storage.Tx, id string, changed []Changed) error {
	byReason := map[string][]string{}
	for _, each := range changed {
		byReason[each.Why] = append(byReason[each.Why], each.InstanceID)
	}

	for _, why := range slices.Sorted(maps.Keys(byReason)) {
		if err := o.Orchestrations.LeaveOut(ctx, tx, id, "Changed since the plan was made: "+why, byReason[why]); err != nil {
			return err
		}
	}

	return nil
}

// ExpirePlans expires the plans that are older than environment.PlanLifetime, and removes their targets.
func (c Conductor) ExpirePlans(ctx context.Context) error {
	old, err := c.Orchestrations.PlannedBefore(ctx, c.Clock.Now().Add(-environment.PlanLifetime))
	if err != nil {
		return err
	}

	for _, id := range old {
		if err := c.DB.InTx(ctx, func(tx storage.Tx) error {
			plan, err := c.Orchestrations.Lock(ctx, tx, id)
			if err != nil || plan.State != environment.OrchestrationPlanned {
				return err
			}

			if err := c.Orchestrations.RemoveTargets(ctx, tx, id); err != nil {
				return err
			}

			return c.Orchestrations.SetState(ctx, tx, id, environment.OrchestrationExpired, plan.Description+". It was not applied in time", c.Clock.Now())
		}); err != nil {
			return err
		}
	}

	return nil
}
