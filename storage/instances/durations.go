package instances

import (
	"context"
	"fmt"
	"time"

	"github.com/environment-broker/environment-broker/internal/environment"
	"github.com/environment-broker/environment-broker/storage"
)

// recentOperations is the maximum number of operations of a kind that Durations returns.
const recentOperations = 250

// Duration describes how long an operation took to succeed. Started is the time at which an engine first claimed the operation,
// and Took is the time from then until its success. PlanID is the current plan of the instance, or empty if the instance no longer
// exists.
type Duration struct {
	OperationID  string
	Kind, PlanID string
	Started      time.Time
	Took         time.Duration
}

// Durations returns, for each kind, the durations of the newest recentOperations operations that succeeded, newest first. It
// excludes retries, because they do not repeat finished stages. It also excludes upgrades that changed nothing. These are
// recognized by their description, so erased operations, which have lost their descriptions, are excluded, too.
func (s *Store) Durations(ctx context.Context) ([]Duration, error) {
	var durations []Duration

	for _, kind := range environment.AllKinds() {
		rows, err := storage.Select[struct {
			ID         string       `db:"id"`
			PlanID     string       `db:"plan_id"`
			StartedAt  storage.Time `db:"started_at"`
			FinishedAt storage.Time `db:"finished_at"`
		}](ctx, s.db.Reader(), `SELECT id, started_at, finished_at,
				COALESCE((SELECT plan_id FROM instances WHERE instances.id = operations.instance_id), '') AS plan_id
			FROM operations
			WHERE kind = ? AND state = 'succeeded' AND predecessor_id = '' AND started_at IS NOT NULL AND erased_by = ''
				AND description NOT LIKE ? AND description NOT LIKE ?
			ORDER BY created_at DESC `+storage.Page(recentOperations, 0), kind, environment.TextDryRun+"%", environment.TextPreempted+"%")
		if err != nil {
			return nil, fmt.Errorf("reading the durations of operations: %w", err)
		}

		for _, row := range rows {
			durations = append(durations, Duration{row.ID, kind, row.PlanID, row.StartedAt.Time, row.FinishedAt.Sub(row.StartedAt.Time)})
		}
	}

	return durations, nil
}
