package orchestrations

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/environment-broker/environment-broker/internal/environment"
	"github.com/environment-broker/environment-broker/internal/failure"
	"github.com/environment-broker/environment-broker/storage"
)

// insertBatch is the maximum number of targets in one statement, because databases limit the number of arguments.
const insertBatch = 500

// targetRow is a row of orchestration_targets.
type targetRow struct {
	OrchestrationID string       `db:"orchestration_id"`
	InstanceID      string       `db:"instance_id"`
	OperationID     string       `db:"operation_id"`
	FormerIDs       string       `db:"former_ids"`
	State           string       `db:"state"`
	Description     string       `db:"description"`
	Provider        string       `db:"provider"`
	Region          string       `db:"region"`
	NotBefore       storage.Time `db:"not_before"`
	NotAfter        storage.Time `db:"not_after"`
	Window          string       `db:"maintenance_window"`
	FromVersion     string       `db:"from_version"`
	ToVersion       string       `db:"to_version"`
	Wave            int          `db:"wave"`
	ChosenAt        storage.Time `db:"chosen_at"`
	ChosenBy        string       `db:"chosen_by"`
	Shoot           string       `db:"shoot"`
}

// insertedTargets lists the columns that AddTargets sets. targetColumns lists the columns of targetRow.
const (
	insertedTargets = `orchestration_id, instance_id, operation_id, former_ids, state, description, provider, region, not_before,
	from_version, to_version, wave, maintenance_window, not_after`
	targetColumns = insertedTargets + `, chosen_at, chosen_by`
)

func (r targetRow) target() environment.Target {
	former, _, _ := strings.Cut(r.FormerIDs, " ")

	return environment.Target{
		OrchestrationID: r.OrchestrationID, InstanceID: r.InstanceID, OperationID: r.OperationID, FormerID: former,
		State: environment.TargetState(r.State), Description: r.Description, Provider: r.Provider, Region: r.Region, NotBefore: r.NotBefore.Time,
		NotAfter: r.NotAfter.Time, Window: r.Window, Wave: r.Wave, FromVersion: r.FromVersion, ToVersion: r.ToVersion, ShootName: r.Shoot,
		ChosenAt: r.ChosenAt.Time, ChosenBy: r.ChosenBy,
	}
}

// AddTargets adds the targets in the caller's transaction. Targets whose Wave is 0 are added to wave 1.
func (s *Store) AddTargets(ctx context.Context, tx storage.Tx, targets []environment.Target) error {
	for batch := range slices.Chunk(targets, insertBatch) {
		var args []any

		for _, target := range batch {
			args = append(args, target.OrchestrationID, target.InstanceID, target.OperationID, target.FormerID, string(target.State),
				target.Description, target.Provider, target.Region, storage.At(target.NotBefore), target.FromVersion, target.ToVersion,
				max(target.Wave, 1),
				target.Window, storage.At(target.NotAfter))
		}

		values := strings.TrimSuffix(strings.Repeat(`(?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?), `, len(batch)), ", ")

		if _, err := storage.Exec(ctx, tx, `INSERT INTO orchestration_targets (`+insertedTargets+`) VALUES `+values, args...); err != nil {
			return failure.While(err, "adding the targets of an orchestration")
		}
	}

	return nil
}

// Settle copies the final states of ended upgrades to their targets.
func (s *Store) Settle(ctx context.Context, tx storage.Tx, id string) error {
	_, err := storage.Exec(ctx, tx, `UPDATE orchestration_targets SET
			state = (SELECT operations.state FROM operations WHERE operations.id = operation_id), description = ''
		WHERE orchestration_id = ? AND state = 'in progress' AND EXISTS (
			SELECT 1 FROM operations WHERE operations.id = operation_id AND operations.state IN ('succeeded', 'failed', 'canceled'))`, id)

	return failure.While(err, "recording the results of orchestration %s", id)
}

// Place identifies a region of a cloud provider.
type Place struct{ Provider, Region string }

// Running returns the number of targets in progress in each place.
func (s *Store) Running(ctx context.Context, tx storage.Tx, id string) (map[Place]int, error) {
	rows, err := storage.Select[struct {
		Provider string `db:"provider"`
		Region   string `db:"region"`
		Count    int    `db:"count"`
	}](ctx, tx, `SELECT provider, region, count(*) AS count FROM orchestration_targets
		WHERE orchestration_id = ? AND state = 'in progress' GROUP BY provider, region`, id)

	running := map[Place]int{}
	for _, row := range rows {
		running[Place{row.Provider, row.Region}] = row.Count
	}

	return running, failure.While(err, "counting the targets of orchestration %s", id)
}

// DueFilter selects targets that can start.
type DueFilter struct {
	// Wave is the latest wave that has begun; only targets of this wave and earlier ones are selected. Now is the current time; only
	// targets that are due by then are selected.
	Wave int
	Now  time.Time
	// WithoutProviders and WithoutRegions are the providers and regions in which no further upgrade can start now.
	WithoutProviders, WithoutRegions []string
	Limit                            int
}

// Due returns pending targets that are due, sorted by wave. Targets whose windows have ended are not due.
func (s *Store) Due(ctx context.Context, tx storage.Tx, id string, filter DueFilter) ([]environment.Target, error) {
	var conditions storage.Conditions

	conditions.Add(true, "orchestration_id = ? AND state = 'pending' AND wave <= ? AND not_before <= ? AND (not_after IS NULL OR not_after > ?)",
		id, filter.Wave, storage.At(filter.Now), storage.At(filter.Now))
	conditions.Add(len(filter.WithoutProviders) > 0, "provider NOT IN (?)", filter.WithoutProviders)
	conditions.Add(len(filter.WithoutRegions) > 0, "region NOT IN (?)", filter.WithoutRegions)
	where, args := conditions.Where()

	rows, err := storage.Select[targetRow](ctx, tx, `SELECT `+targetColumns+` FROM orchestration_targets`+where+
		` ORDER BY wave, not_before, instance_id `+storage.Page(filter.Limit, 0), args...)

	return targets(rows), failure.While(err, "finding due targets of orchestration %s", id)
}

func targets(rows []targetRow) []environment.Target {
	found := make([]environment.Target, 0, len(rows))
	for _, row := range rows {
		found = append(found, row.target())
	}

	return found
}

// NextDue returns when the next pending target in the given wave or an earlier one is due. It returns the zero time if there is no
// such target.
func (s *Store) NextDue(ctx context.Context, tx storage.Tx, id string, wave int) (time.Time, error) {
	next, err := storage.Get[storage.Time](ctx, tx, `SELECT min(not_before) FROM orchestration_targets
		WHERE orchestration_id = ? AND state = 'pending' AND wave <= ?`, id, wave)

	return next.Time, failure.While(err, "finding the next target of orchestration %s", id)
}

// SetTarget stores the state, the description and NotBefore of a target.
func (s *Store) SetTarget(ctx context.Context, tx storage.Tx, target environment.Target) error {
	_, err := storage.Exec(ctx, tx, `UPDATE orchestration_targets SET state = ?, description = ?, not_before = ?
		WHERE orchestration_id = ? AND instance_id = ?`,
		string(target.State), target.Description, storage.At(target.NotBefore), target.OrchestrationID, target.InstanceID)

	return failure.While(err, "changing a target of orchestration %s", target.OrchestrationID)
}

// CancelPending cancels all pending targets.
func (s *Store) CancelPending(ctx context.Context, tx storage.Tx, id, why string) error {
	_, err := storage.Exec(ctx, tx, `UPDATE orchestration_targets SET state = 'canceled', description = ?
		WHERE orchestration_id = ? AND state = 'pending'`, why, id)

	return failure.While(err, "canceling the targets of orchestration %s", id)
}
