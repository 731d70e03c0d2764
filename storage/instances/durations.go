package instances

import (
	"context"
	"fmt"
	"time"

	"github.com/environment-broker/environment-broker/internal/environment"
	"github.com/environment-broker/environment-broker/storage"
)

// recentOperations bounds the rows that Durations reads, including operations that it does not return.
const recentOperations = 1000

// Duration is the time that an operation took from its first claim, at Started, to its success. PlanID is the instance's current plan. It
// is empty if the instance is gone.
type Duration struct {
	OperationID  string
	Kind, PlanID string
	Started      time.Time
	Took         time.Duration
}

// Durations returns the durations of operations that succeeded, newest first. To bound the query, it considers only the
// recentOperations operations that were accepted last. It excludes retries, because they do not repeat finished stages, upgrades that
// changed nothing, and erased operations, whose descriptions no longer say so.
func (s *Store) Durations(ctx context.Context) ([]Duration, error) {
	rows, err := storage.Select[struct {
		ID         string       `db:"id"`
		Kind       string       `db:"kind"`
		PlanID     string       `db:"plan_id"`
		StartedAt  storage.Time `db:"started_at"`
		FinishedAt storage.Time `db:"finished_at"`
	}](ctx, s.db.Reader(), `SELECT recent.id, recent.kind, recent.started_at, recent.finished_at,
		COALESCE((SELECT plan_id FROM instances WHERE instances.id = recent.instance_id), '') AS plan_id
		FROM (SELECT id, kind, instance_id, state, description, predecessor_id, erased_by, created_at, started_at, finished_at
			FROM operations
			ORDER BY created_at DESC, id DESC `+storage.Page(recentOperations, 0)+`) AS recent
		WHERE recent.state = 'succeeded' AND recent.predecessor_id = '' AND recent.started_at IS NOT NULL AND recent.erased_by = ''
			AND recent.description NOT LIKE ? AND recent.description NOT LIKE ?
		ORDER BY recent.created_at DESC`, environment.TextDryRun+"%", environment.TextPreempted+"%")
	if err != nil {
		return nil, fmt.Errorf("reading the durations of operations: %w", err)
	}

	durations := make([]Duration, 0, len(rows))
	for _, row := range rows {
		durations = append(durations, Duration{row.ID, row.Kind, row.PlanID, row.StartedAt.Time, row.FinishedAt.Sub(row.StartedAt.Time)})
	}

	return durations, nil
}
