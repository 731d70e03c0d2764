package orchestration

import (
	"fmt"
	"time"

	"github.com/dustin/go-humanize/english"

	"github.com/environment-broker/environment-broker/internal/environment"
	"github.com/environment-broker/environment-broker/internal/environment/fleet"
	"github.com/environment-broker/environment-broker/process"
)

// Explain describes an orchestration to operators: its current activity, why it waits and until when, and the possible
// interventions. waves contains the number of targets for each wave and current state.
func Explain(orchestration environment.Orchestration, waves map[int]map[string]int, now time.Time) []string {
	strategy, id := orchestration.Parameters.Strategy, orchestration.ID

	switch orchestration.State {
	case environment.OrchestrationPlanned:
		return []string{
			fmt.Sprintf("This is a plan. Nothing starts until somebody runs 'ebctl upgrade apply %s', which is possible until %s.", id,
				orchestration.CreatedAt.Add(environment.PlanLifetime).UTC().Format(time.RFC3339)),
		}
	case environment.OrchestrationExpired:
		return []string{"The plan was not applied in time. Make a new one with 'ebctl upgrade plan'."}
	case environment.OrchestrationPending:
		return []string{"The instances are being selected. If this takes longer than a minute, look for the operation of kind orchestrate in 'ebctl operation list'."}
	case environment.OrchestrationPaused:
		return []string{
			orchestration.Description + ". No upgrades start; those in progress run to completion.",
			fmt.Sprintf("Continue with 'ebctl orchestration resume %s', or end it with 'ebctl orchestration cancel %s'.", id, id),
		}
	case environment.OrchestrationGated:
		return []string{
			orchestration.Description + ". No upgrades start; those in progress run to completion.",
			fmt.Sprintf("List the failures with 'ebctl orchestration targets %s --state failed', and repeat them with 'ebctl orchestration retry %s'.", id, id),
			fmt.Sprintf("To continue, run 'ebctl orchestration resume %s'; the gate then counts only new failures. To end it, run "+
				"'ebctl orchestration cancel %s'.", id, id),
		}
	case environment.OrchestrationCanceling:
		return []string{"No more upgrades will start. The orchestration ends when those in progress have ended."}
	case environment.OrchestrationFailed:
		return []string{
			orchestration.Description + ".",
			fmt.Sprintf("Retry the failed upgrades with 'ebctl orchestration retry %s'.", id),
		}
	case environment.OrchestrationSucceeded, environment.OrchestrationCanceled:
		return []string{orchestration.Description + "."}
	case environment.OrchestrationInProgress, environment.OrchestrationRetrying:
	}

	return append(explainRun(orchestration, waves, now), explainGate(strategy)...)
}

// explainRun explains an orchestration that starts upgrades.
func explainRun(orchestration environment.Orchestration, waves map[int]map[string]int, now time.Time) []string {
	strategy, begun := orchestration.Parameters.Strategy, map[string]int{}

	for wave, stats := range waves {
		if wave <= orchestration.Wave {
			for state, count := range stats {
				begun[state] += count
			}
		}
	}

	running := begun[string(process.InProgress)] + begun[string(process.Canceling)]
	waiting := unfinished(begun) - running

	switch {
	case strategy.ScheduleTime.After(now):
		return []string{fmt.Sprintf("Nothing starts before %s, the requested start time.", strategy.ScheduleTime.UTC().Format(time.RFC3339))}
	case !orchestration.SoakUntil.IsZero():
		return []string{fmt.Sprintf("Wave %d has ended. The next one begins at %s.", orchestration.Wave, orchestration.SoakUntil.UTC().Format(time.RFC3339))}
	case running == 0 && waiting > 0:
		return []string{fmt.Sprintf("No upgrade is in progress. Instances that wait for another operation, a maintenance window or the start of their upgrade: %d. "+
			"'ebctl orchestration targets %s --state pending' shows why.", waiting, orchestration.ID)}
	case waiting > 0:
		return []string{fmt.Sprintf("%s in progress, and %s waiting. At most %s.",
			english.Plural(running, "upgrade", ""), english.Plural(waiting, "instance", ""), limits(*strategy.Parallel))}
	default:
		return []string{fmt.Sprintf("%s in progress, and no other instance of this wave is waiting.", english.Plural(running, "upgrade", ""))}
	}
}

// limits describes the limits of an orchestration, such as "10 run at once, 2 in a region".
func limits(parallel fleet.Parallel) string {
	text := fmt.Sprintf("%d run at once", parallel.Workers)
	if parallel.WorkersPerRegion > 0 {
		text += fmt.Sprintf(", %d in a region", parallel.WorkersPerRegion)
	}

	if parallel.WorkersPerProvider > 0 {
		text += fmt.Sprintf(", %d at a cloud provider", parallel.WorkersPerProvider)
	}

	return text
}

// explainGate explains when the failure gate stops the orchestration.
func explainGate(strategy fleet.Strategy) []string {
	gate := strategy.FailureGate

	switch {
	case gate == nil:
		return nil
	case gate.Failures > 0 && gate.Percentage > 0:
		return []string{fmt.Sprintf("The orchestration stops after %s, or when %d %% of the upgrades in the waves that have begun have failed.",
			english.Plural(gate.Failures, "failure", ""), gate.Percentage)}
	case gate.Failures > 0:
		return []string{fmt.Sprintf("The orchestration stops after %s.", english.Plural(gate.Failures, "failure", ""))}
	default:
		return []string{fmt.Sprintf("The orchestration stops when %d %% of the upgrades in the waves that have begun have failed.", gate.Percentage)}
	}
}
