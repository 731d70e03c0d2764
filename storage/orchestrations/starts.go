package orchestrations

import (
	"context"
	"time"

	"github.com/environment-broker/environment-broker/internal/failure"
	"github.com/environment-broker/environment-broker/storage"
)

// Start counts the pending targets of a wave that have the same next occurrence of the same maintenance window.
type Start struct {
	// Wave is 0 for targets whose owners have chosen a time: they do not delay waves.
	Wave int
	// Window is empty for targets that start at any time from NotBefore.
	Window string
	// NotAfter is zero if the occurrence has no end.
	NotBefore, NotAfter time.Time
	Count               int
}

// Starts returns when pending targets can start, sorted by wave and time.
func (s *Store) Starts(ctx context.Context, tx storage.Tx, id string) ([]Start, error) {
	rows, err := storage.Select[struct {
		Wave      int          `db:"start_wave"`
		Window    string       `db:"start_window"`
		NotBefore storage.Time `db:"not_before"`
		NotAfter  storage.Time `db:"not_after"`
		Count     int          `db:"count"`
	}](ctx, tx, `SELECT CASE WHEN chosen_at IS NULL THEN wave ELSE 0 END AS start_wave,
			CASE WHEN chosen_at IS NULL THEN maintenance_window ELSE '' END AS start_window, not_before, not_after, count(*) AS count
		FROM orchestration_targets WHERE orchestration_id = ? AND state = 'pending' GROUP BY 1, 2, 3, 4 ORDER BY 1, 3, 2`, id)

	starts := make([]Start, 0, len(rows))
	for _, row := range rows {
		starts = append(starts, Start{row.Wave, row.Window, row.NotBefore.Time, row.NotAfter.Time, row.Count})
	}

	return starts, failure.While(err, "reading when targets of orchestration %s start", id)
}

// CountTargets returns the number of targets in each state, as the conductors last saw them, for each of the orchestrations.
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
