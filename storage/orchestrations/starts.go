package orchestrations

import (
	"context"
	"time"

	"github.com/environment-broker/environment-broker/internal/failure"
	"github.com/environment-broker/environment-broker/storage"
)

// Start is a group of unfinished targets that have the same wave, provider, region, state, maintenance window and next occurrence
// of this window. Count is the number of targets in the group.
type Start struct {
	// Wave is 0 for targets whose owners have chosen a time, because these targets do not delay waves.
	Wave int
	// Running is true if the targets are in progress, and false if they are pending.
	Running          bool
	Provider, Region string
	// Window is empty if the targets can start at any time after NotBefore.
	Window string
	// NotBefore and NotAfter are the start and the end of the occurrence. NotAfter is zero if the occurrence has no end.
	NotBefore, NotAfter time.Time
	Count               int
}

// Starts groups the unfinished targets by the time at which they can start. The groups are sorted by wave and time.
func (s *Store) Starts(ctx context.Context, tx storage.Tx, id string) ([]Start, error) {
	rows, err := storage.Select[struct {
		Wave      int          `db:"start_wave"`
		Running   bool         `db:"running"`
		Provider  string       `db:"provider"`
		Region    string       `db:"region"`
		Window    string       `db:"start_window"`
		NotBefore storage.Time `db:"not_before"`
		NotAfter  storage.Time `db:"not_after"`
		Count     int          `db:"count"`
	}](ctx, tx, `SELECT CASE WHEN chosen_at IS NULL THEN wave ELSE 0 END AS start_wave, state = 'in progress' AS running,
			provider, region, CASE WHEN chosen_at IS NULL THEN maintenance_window ELSE '' END AS start_window, not_before, not_after,
			count(*) AS count
		FROM orchestration_targets WHERE orchestration_id = ? AND state IN ('pending', 'in progress')
		GROUP BY 1, 2, 3, 4, 5, 6, 7 ORDER BY 1, 6, 5, 4, 3, 2`, id)

	starts := make([]Start, 0, len(rows))
	for _, row := range rows {
		starts = append(starts, Start{
			Wave: row.Wave, Running: row.Running, Provider: row.Provider, Region: row.Region, Window: row.Window,
			NotBefore: row.NotBefore.Time, NotAfter: row.NotAfter.Time, Count: row.Count,
		})
	}

	return starts, failure.While(err, "reading the start times of the targets of orchestration %s", id)
}

// CountTargets returns the number of targets in each state, for each of the given orchestrations. The states are those that the
// conductors last stored.
func (s *Store) CountTargets(ctx context.Context, tx storage.Tx, ids []string) (map[string]map[string]int, error) {
	counts := map[string]map[string]int{}
	if len(ids) == 0 {
		return counts, nil
	}

	rows, err := storage.Select[struct {
		ID    string `db:"orchestration_id"`
		State string `db:"state"`
		Count int    `db:"count"`
	}](ctx, tx, `SELECT orchestration_id, state, count(*) AS count FROM orchestration_targets WHERE orchestration_id IN (?) GROUP BY 1, 2`, ids)

	for _, row := range rows {
		if counts[row.ID] == nil {
			counts[row.ID] = map[string]int{}
		}

		counts[row.ID][row.State] = row.Count
	}

	return counts, failure.While(err, "counting the targets of orchestrations")
}
