package orchestration

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/dustin/go-humanize/english"

	"github.com/environment-broker/environment-broker/internal/environment"
	"github.com/environment-broker/environment-broker/process"
	"github.com/environment-broker/environment-broker/storage"
	"github.com/environment-broker/environment-broker/storage/orchestrations"
)

// planLimit is the time limit for the transaction that stores all targets. It is longer than the limit for other transactions,
// because a fleet can be large. A long transaction delays nothing else, because it locks only rows of the orchestration.
const planLimit = 2 * time.Minute

// Plan implements orchestrating.Orchestrations: it selects the targets and stores them. When the upgrade of a target starts, the
// conductor checks again whether the instance can be upgraded.
func (c Conductor) Plan(ctx context.Context, by process.Record) error {
	id, _ := environment.OrchestrationOf(by.InstanceID)

	orchestration, err := c.Orchestrations.Get(ctx, c.DB.Reader(), id)
	if err != nil || orchestration.State != environment.OrchestrationPending {
		return explain(err)
	}

	targets, err := c.Planner.targets(ctx, orchestration)
	if err != nil {
		return explain(err)
	}

	limited, cancel := context.WithTimeout(ctx, planLimit)
	defer cancel()

	return c.conduct(limited, by, func(tx storage.Tx, orchestration environment.Orchestration) error {
		// The orchestration may have been canceled, or already planned by a run whose result was lost.
		if orchestration.State != environment.OrchestrationPending {
			return nil
		}

		if err := c.Orchestrations.AddTargets(limited, tx, targets); err != nil {
			return err
		}

		scheduled := 0

		for _, target := range targets {
			if target.State == environment.TargetPending {
				scheduled++
			}
		}

		return c.Orchestrations.SetState(limited, tx, id, environment.OrchestrationInProgress,
			"Scheduled "+english.Plural(scheduled, "operation", ""), c.Clock.Now())
	})
}

// unfinished returns the number of targets that have not ended.
func unfinished(stats map[string]int) int {
	return stats[string(environment.TargetPending)] + stats[orchestrations.StateRetrying] + stats[string(process.InProgress)] +
		stats[string(process.Canceling)]
}

// describe returns the number of targets in each state as text, such as "2 succeeded, 1 failed".
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
