package orchestrations

import (
	"context"
	"errors"
	"time"

	"github.com/environment-broker/environment-broker/internal/failure"
	"github.com/environment-broker/environment-broker/storage"
)

// WaveCounts contains the numbers of targets that determine whether an orchestration continues. In the descriptions of the fields,
// "begun waves" means the wave that was passed to Wave and all earlier ones.
type WaveCounts struct {
	// Unfinished is the number of targets in begun waves that are in progress or pending, except those whose owners chose a time.
	// Upgraded is the number of targets in the given wave whose upgrades have ended.
	Unfinished int `db:"unfinished"`
	Upgraded   int `db:"upgraded"`
	// Failed is the number of targets in begun waves that have failed, except accepted failures. Total is the number of targets in
	// begun waves, except those that were left out or canceled.
	Failed int `db:"failed"`
	Total  int `db:"total"`
	// Pending is the number of pending targets in all waves. Next is the first wave after the begun ones that has a pending target,
	// or 0.
	Pending int `db:"pending"`
	Next    int `db:"next"`
}

// Wave returns the counts of an orchestration's targets for the given wave.
func (s *Store) Wave(ctx context.Context, tx storage.Tx, id string, wave int) (WaveCounts, error) {
	counts, err := storage.Get[WaveCounts](ctx, tx, `SELECT
			count(CASE WHEN wave <= ? AND state IN ('in progress', 'pending') AND chosen_at IS NULL THEN 1 END) AS unfinished,
			count(CASE WHEN wave = ? AND state IN ('succeeded', 'failed') THEN 1 END) AS upgraded,
			count(CASE WHEN wave <= ? AND state = 'failed' AND NOT accepted THEN 1 END) AS failed,
			count(CASE WHEN wave <= ? AND state NOT IN ('left out', 'canceled') THEN 1 END) AS total,
			count(CASE WHEN state = 'pending' THEN 1 END) AS pending,
			COALESCE(min(CASE WHEN wave > ? AND state = 'pending' THEN wave END), 0) AS next
		FROM orchestration_targets WHERE orchestration_id = ?`, wave, wave, wave, wave, wave, id)

	return counts, failure.While(err, "counting the targets of orchestration %s", id)
}

// SetWave changes the current wave of an orchestration that the transaction has locked. The wave soaks until soakUntil. If
// soakUntil is zero, the wave does not soak.
func (s *Store) SetWave(ctx context.Context, tx storage.Tx, id string, wave int, soakUntil, now time.Time) error {
	_, err := storage.Exec(ctx, tx, `UPDATE orchestrations SET wave = ?, soak_until = ?, updated_at = ? WHERE id = ?`,
		wave, storage.At(soakUntil), storage.At(now), id)

	return failure.While(err, "changing the wave of orchestration %s", id)
}

// AcceptFailures marks all targets that have failed so far, so that the failure gate counts only later failures.
func (s *Store) AcceptFailures(ctx context.Context, tx storage.Tx, id string) error {
	_, err := storage.Exec(ctx, tx, `UPDATE orchestration_targets SET accepted = TRUE WHERE orchestration_id = ? AND state = 'failed'`, id)

	return failure.While(err, "accepting the failures of orchestration %s", id)
}

// CommonFailure describes the most common error of failed targets.
type CommonFailure struct {
	Reason    string `db:"reason"`
	Component string `db:"component"`
	// Message is the error message of one of the targets that failed with this error. Count is the number of such targets.
	Message string `db:"message"`
	Count   int    `db:"count"`
}

// CommonFailure returns the most common error of the failed targets, except accepted failures. It returns the zero value if there
// is no such target.
func (s *Store) CommonFailure(ctx context.Context, tx storage.Tx, id string) (CommonFailure, error) {
	common, err := storage.Get[CommonFailure](ctx, tx, `SELECT operations.problem_reason AS reason, operations.problem_component AS component,
			min(operations.problem_message) AS message, count(*) AS count
		FROM orchestration_targets AS targets JOIN operations ON operations.id = targets.operation_id
		WHERE targets.orchestration_id = ? AND targets.state = 'failed' AND NOT targets.accepted
		GROUP BY operations.problem_reason, operations.problem_component ORDER BY count(*) DESC, 1, 2 LIMIT 1`, id)
	if errors.Is(err, storage.ErrNotFound) {
		err = nil
	}

	return common, failure.While(err, "finding the most common error of orchestration %s", id)
}

// WaveStats returns, for each wave, the number of targets in each current state.
func (s *Store) WaveStats(ctx context.Context, tx storage.Tx, id string) (map[int]map[string]int, error) {
	rows, err := storage.Select[struct {
		Wave  int    `db:"wave"`
		State string `db:"shown_state"`
		Count int    `db:"count"`
	}](ctx, tx, `SELECT targets.wave AS wave, `+shownState+` AS shown_state, count(*) AS count FROM orchestration_targets AS targets
		LEFT JOIN operations ON operations.id = targets.operation_id AND targets.state = 'in progress'
		WHERE targets.orchestration_id = ? GROUP BY 1, 2`, id)

	stats := map[int]map[string]int{}
	for _, row := range rows {
		if stats[row.Wave] == nil {
			stats[row.Wave] = map[string]int{}
		}

		stats[row.Wave][row.State] = row.Count
	}

	return stats, failure.While(err, "counting the targets of orchestration %s", id)
}

// Count is the number of orchestrations, or of targets of orchestrations, with the given kind and state.
type Count struct {
	Kind  string `db:"kind"`
	State string `db:"state"`
	Count int    `db:"count"`
}

// Counts returns, for each kind and state, the number of unfinished orchestrations, without plans. It also returns, for each kind
// and state, the number of their targets. The states of the targets are those that the conductors last stored.
func (s *Store) Counts(ctx context.Context) (orchestrations, targets []Count, err error) {
	orchestrations, err = storage.Select[Count](ctx, s.db.Reader(), `SELECT kind, state, count(*) AS count FROM orchestrations
		WHERE state NOT IN ('canceled', 'succeeded', 'failed', 'planned', 'expired') GROUP BY kind, state`)
	if err != nil {
		return nil, nil, failure.While(err, "counting orchestrations")
	}

	targets, err = storage.Select[Count](ctx, s.db.Reader(), `SELECT orchestrations.kind AS kind, targets.state AS state, count(*) AS count
		FROM orchestrations JOIN orchestration_targets AS targets ON targets.orchestration_id = orchestrations.id
		WHERE orchestrations.state NOT IN ('canceled', 'succeeded', 'failed', 'planned', 'expired') GROUP BY orchestrations.kind, targets.state`)

	return orchestrations, targets, failure.While(err, "counting the targets of orchestrations")
}
