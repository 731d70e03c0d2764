package orchestrations

import (
	"context"
	"fmt"

	"github.com/environment-broker/environment-broker/internal/environment"
	"github.com/environment-broker/environment-broker/internal/failure"
	"github.com/environment-broker/environment-broker/storage"
)

// StateRetrying is the state that lists show for a pending target whose earlier upgrade has failed.
const StateRetrying = "retrying"

// textRemoved is the description that lists show for a target whose upgrade the retention has removed from the database.
const textRemoved = "The record of this upgrade was deleted after its retention period."

// shownState is the SQL expression for the current state of a target. While the target is in progress, this is the state of its
// upgrade, except that a target whose upgrade is still pending is shown as in progress.
const shownState = `CASE WHEN targets.state = 'in progress' AND operations.state <> 'pending' THEN operations.state ELSE ` + ownState + ` END`

// ownState is the SQL expression for the current state of a target that is not in progress.
const ownState = `CASE WHEN targets.state = 'pending' AND targets.former_ids <> '' THEN '` + StateRetrying + `' ELSE targets.state END`

// Filter selects targets. Empty fields do not restrict the selection, but see States.
type Filter struct {
	// OperationID selects the target whose upgrade is this operation.
	OperationID string
	// States selects targets by their current states. If it is empty, all targets are selected except those that were left out.
	States        []string
	Limit, Offset int
}

// Listed is a target with its instance and its upgrade. If the instance or the upgrade does not exist, the corresponding fields
// are empty.
type Listed struct {
	environment.Target

	// State is the current state of the target.
	State    string
	Instance environment.Instance
	// Description is the description of the upgrade. If the upgrade was removed after its retention period, the description says so.
	// Problem is the message of the upgrade's failure.
	Description, Problem string
}

// listedRow is a target joined with its instance and its upgrade.
type listedRow struct {
	targetRow

	Shown           string `db:"shown_state"`
	RuntimeID       string `db:"runtime_id"`
	GlobalAccountID string `db:"global_account_id"`
	SubAccountID    string `db:"subaccount_id"`
	PlanID          string `db:"plan_id"`
	PlanName        string `db:"plan_name"`
	ShootName       string `db:"shoot_name"`
	Upgrade         string `db:"upgrade_description"`
	Removed         bool   `db:"removed"`
	Problem         string `db:"problem_message"`
}

// ListTargets returns a page of targets, sorted by instance, and the number of targets on all pages.
func (s *Store) ListTargets(ctx context.Context, id string, filter Filter) ([]Listed, int, error) {
	var conditions storage.Conditions

	conditions.Add(true, "targets.orchestration_id = ?", id)
	conditions.Add(filter.OperationID != "", "targets.operation_id = ?", filter.OperationID)
	conditions.Add(len(filter.States) > 0, shownState+" IN (?)", filter.States)
	conditions.Add(len(filter.States) == 0, "targets.state <> 'left out'")
	where, args := conditions.Where()

	from := ` FROM orchestration_targets AS targets LEFT JOIN operations ON operations.id = targets.operation_id
		LEFT JOIN instances ON instances.id = targets.instance_id` + where

	rows, err := storage.Select[listedRow](ctx, s.db.Reader(), `SELECT targets.orchestration_id, targets.instance_id, targets.operation_id,
		targets.former_ids, targets.state, targets.description, targets.provider, targets.region, targets.not_before, targets.not_after,
			targets.maintenance_window, targets.from_version, targets.to_version, targets.wave, targets.chosen_at, targets.chosen_by,
		`+shownState+` AS shown_state, COALESCE(instances.runtime_id, '') AS runtime_id,
		COALESCE(instances.global_account_id, '') AS global_account_id, COALESCE(instances.subaccount_id, '') AS subaccount_id,
		COALESCE(instances.plan_id, '') AS plan_id, COALESCE(instances.plan_name, '') AS plan_name,
		COALESCE(instances.shoot_name, '') AS shoot_name, COALESCE(operations.description, '') AS upgrade_description,
		COALESCE(operations.problem_message, '') AS problem_message,
		operations.id IS NULL AND targets.state IN ('succeeded', 'failed') AS removed`+from+` ORDER BY targets.instance_id `+
		storage.Page(filter.Limit, filter.Offset), args...)
	if err != nil {
		return nil, 0, fmt.Errorf("listing the targets of orchestration %s: %w", id, err)
	}

	listed := make([]Listed, 0, len(rows))
	for _, row := range rows {
		target := row.target()

		description := row.Upgrade
		if description == "" {
			description = target.Description
		}

		if row.Removed {
			description = textRemoved
		}

		listed = append(listed, Listed{
			Target: target, State: row.Shown, Description: description, Problem: row.Problem,
			Instance: environment.Instance{
				ID: row.InstanceID, RuntimeID: row.RuntimeID, GlobalAccountID: row.GlobalAccountID, SubAccountID: row.SubAccountID,
				PlanID: row.PlanID, PlanName: row.PlanName, ShootName: row.ShootName,
			},
		})
	}

	total, err := storage.Get[int](ctx, s.db.Reader(), `SELECT count(*)`+from, args...)

	return listed, total, failure.While(err, "counting the targets of orchestration %s", id)
}

// Stats returns the number of targets in each current state, including those that were left out. It reads operations only for the
// targets in progress, of which there are few.
func (s *Store) Stats(ctx context.Context, tx storage.Tx, id string) (map[string]int, error) {
	rows, err := storage.Select[struct {
		State string `db:"shown_state"`
		Count int    `db:"count"`
	}](ctx, tx, `SELECT `+ownState+` AS shown_state, count(*) AS count
			FROM orchestration_targets AS targets WHERE targets.orchestration_id = ? AND targets.state <> 'in progress' GROUP BY 1
		UNION ALL SELECT `+shownState+` AS shown_state, count(*) AS count FROM orchestration_targets AS targets
			LEFT JOIN operations ON operations.id = targets.operation_id
			WHERE targets.orchestration_id = ? AND targets.state = 'in progress' GROUP BY 1`, id, id)

	stats := map[string]int{}
	for _, row := range rows {
		stats[row.State] += row.Count
	}

	return stats, failure.While(err, "counting the targets of orchestration %s", id)
}
