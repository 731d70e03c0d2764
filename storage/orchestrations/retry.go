package orchestrations

import (
	"context"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/environment-broker/environment-broker/internal/environment"
	"github.com/environment-broker/environment-broker/internal/failure"
	"github.com/environment-broker/environment-broker/storage"
)

// retryBatch is the maximum number of targets that one statement of Retry changes.
const retryBatch = 100

// Failed returns the failed targets whose upgrades have the given IDs, or all failed targets if operationIDs is empty, sorted by
// instance.
func (s *Store) Failed(ctx context.Context, tx storage.Tx, id string, operationIDs []string) ([]environment.Target, error) {
	var conditions storage.Conditions

	conditions.Add(true, "orchestration_id = ? AND state = 'failed'", id)
	conditions.Add(len(operationIDs) > 0, "operation_id IN (?)", operationIDs)
	where, args := conditions.Where()

	rows, err := storage.Select[targetRow](ctx, tx, `SELECT `+targetColumns+`,
		COALESCE((SELECT shoot_name FROM instances WHERE id = instance_id), '') AS shoot FROM orchestration_targets`+where+` ORDER BY instance_id`, args...)

	return targets(rows), failure.While(err, "finding the failed targets of orchestration %s", id)
}

// Newer pairs a failed upgrade with one that followed it, that is, with a later operation of the same instance. The later
// operation has the same kind, was not canceled, and did not fail because it would have started too late.
type Newer struct {
	// FailedID is the ID of the orchestration's failed upgrade.
	FailedID string `db:"failed_id"`
	// OperationID is the ID of the later upgrade.
	OperationID string `db:"operation_id"`
}

// Newer returns the upgrades that followed the failed upgrades of an orchestration.
func (s *Store) Newer(ctx context.Context, tx storage.Tx, id string) ([]Newer, error) {
	found, err := storage.Select[Newer](ctx, tx, `SELECT failed.id AS failed_id, newer.id AS operation_id
		FROM orchestration_targets AS target
		JOIN operations AS failed ON failed.id = target.operation_id
		JOIN operations AS newer ON newer.instance_id = failed.instance_id AND newer.kind = failed.kind
			AND newer.position > failed.position AND newer.state <> 'canceled' AND newer.problem_reason <> ?
		WHERE target.orchestration_id = ? AND target.state = 'failed'`, failure.ReasonNotStarted, id)

	return found, failure.While(err, "finding upgrades after the failed ones of orchestration %s", id)
}

// Repeated returns the given operation IDs that belong to upgrades after which a retry has started another upgrade.
func (s *Store) Repeated(ctx context.Context, tx storage.Tx, id string, operationIDs []string) ([]string, error) {
	if len(operationIDs) == 0 {
		return nil, nil
	}

	former, err := storage.Select[string](ctx, tx,
		`SELECT former_ids FROM orchestration_targets WHERE orchestration_id = ? AND former_ids <> ''`, id)
	if err != nil {
		return nil, failure.While(err, "finding repeated upgrades of orchestration %s", id)
	}

	all := map[string]bool{}

	for _, ids := range former {
		for operationID := range strings.FieldsSeq(ids) {
			all[operationID] = true
		}
	}

	return slices.DeleteFunc(slices.Clone(operationIDs), func(operationID string) bool { return !all[operationID] }), nil
}

// Retry makes failed targets pending again. next maps the IDs of their instances to the IDs of their next upgrades. Unless
// immediate is set, a target with a maintenance window waits until the window is open, which may already be the case.
func (s *Store) Retry(ctx context.Context, tx storage.Tx, id string, next map[string]string, immediate bool, now time.Time) error {
	for batch := range slices.Chunk(slices.Sorted(maps.Keys(next)), retryBatch) {
		args := make([]any, 0, 2*len(batch)+3)
		for _, instance := range batch {
			args = append(args, instance, next[instance])
		}

		_, err := storage.Exec(ctx, tx, `WITH next (instance, operation) AS (VALUES `+strings.TrimSuffix(strings.Repeat("(?, ?), ", len(batch)), ", ")+`)
			UPDATE orchestration_targets SET state = 'pending', description = '', not_before = ?,
				accepted = FALSE, chosen_at = NULL, chosen_by = '',
				not_after = CASE WHEN maintenance_window = '' OR ? THEN NULL ELSE not_before END,
				former_ids = CASE WHEN former_ids = '' THEN operation_id ELSE operation_id || ' ' || former_ids END, operation_id = next.operation
			FROM next WHERE orchestration_id = ? AND instance_id = next.instance AND state = 'failed'`,
			append(args, storage.At(now), immediate, id)...)
		if err != nil {
			return failure.While(err, "retrying targets of orchestration %s", id)
		}
	}

	return nil
}
