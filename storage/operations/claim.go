package operations

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/environment-broker/environment-broker/process"
	"github.com/environment-broker/environment-broker/storage"
)

// claimPending claims pending operations in the order of their turns. It skips an operation while an older operation of its
// instance is unfinished. The index operations_one_active also enforces this rule between concurrent claims. The operations are
// chosen in a materialized CTE, because PostgreSQL may evaluate a subquery again for each row and would then claim more operations
// than the limit permits.
const claimPending = `WITH chosen AS MATERIALIZED (
	SELECT candidate.id FROM operations AS candidate
	WHERE candidate.kind = ? AND candidate.state = 'pending'%s
		AND NOT EXISTS (
			SELECT 1 FROM operations AS older WHERE older.instance_id = candidate.instance_id
				AND older.position < candidate.position AND older.state IN ('pending', 'in progress', 'canceling'))
	ORDER BY candidate.turn, candidate.created_at LIMIT ?%s
)
UPDATE operations SET
	state = 'in progress', lease_owner = ?, lease_until = ?, fence = fence + 1, woken = FALSE,
	started_at = ?, updated_at = ?, state_changed_at = ?
WHERE id IN (SELECT id FROM chosen) RETURNING ` + columns

// claimDue claims operations that are due again, and operations whose lease has expired. It claims canceling operations regardless
// of their age, so that a cancellation takes effect even if the replica ignores old operations.
const claimDue = `WITH chosen AS MATERIALIZED (
	SELECT id FROM operations
	WHERE kind = ? AND state IN ('in progress', 'canceling')
		AND next_run_at <= ? AND (lease_until IS NULL OR lease_until < ?)
		AND (created_at >= ? OR state = 'canceling')
	ORDER BY next_run_at LIMIT ?%s
)
UPDATE operations SET
	lease_taken_from = lease_owner, lease_owner = ?, lease_until = ?, fence = fence + 1, woken = FALSE
WHERE id IN (SELECT id FROM chosen) RETURNING ` + columns

// dueOf returns, for each kind, whether there is a pending operation and whether there is an operation that is due again. Its
// format verb stands for the list of kinds. ORDER BY with LIMIT makes PostgreSQL read a single index entry. With EXISTS,
// PostgreSQL would scan the table if very many operations are waiting, which takes 19 ms for each kind.
const dueOf = `WITH kinds (name) AS (VALUES %s)
SELECT name,
	(SELECT 1 FROM operations WHERE kind = name AND state = 'pending' ORDER BY turn LIMIT 1) IS NOT NULL AS pending,
	(SELECT 1 FROM operations WHERE kind = name AND state IN ('in progress', 'canceling')
		AND next_run_at <= ? AND (lease_until IS NULL OR lease_until < ?) ORDER BY next_run_at LIMIT 1) IS NOT NULL AS again
FROM kinds`

// dueRow is a row of the result of dueOf.
type dueRow struct {
	Kind    string `db:"name"`
	Pending bool   `db:"pending"`
	Again   bool   `db:"again"`
}

// Due implements process.Store.
func (s *Store) Due(ctx context.Context, kinds []string, now time.Time) ([]process.Due, error) {
	names, args := make([]string, 0, len(kinds)), make([]any, 0, len(kinds))

	for _, kind := range kinds {
		names, args = append(names, "(?)"), append(args, kind)
	}

	rows, err := storage.Select[dueRow](ctx, s.db.Reader(), fmt.Sprintf(dueOf, strings.Join(names, ", ")),
		append(args, storage.At(now), storage.At(now))...)
	if err != nil {
		return nil, fmt.Errorf("finding due operations: %w", err)
	}

	var due []process.Due

	for _, row := range rows {
		if row.Pending {
			due = append(due, process.Due{Kind: row.Kind, Pending: true})
		}

		if row.Again {
			due = append(due, process.Due{Kind: row.Kind})
		}
	}

	return due, nil
}

// Claim implements process.Store.
func (s *Store) Claim(ctx context.Context, claim process.Claim) ([]process.Claimed, error) {
	now, until := storage.At(claim.Now), storage.At(claim.Until)

	createdAfter := claim.CreatedAfter
	if createdAfter.IsZero() {
		createdAfter = time.Unix(0, 0) // the zero time is stored as NULL
	}

	var (
		rows []row
		err  error
	)

	if claim.Pending {
		statement, args := s.claimPending(claim)
		rows, err = storage.Select[row](ctx, s.db.Writer(), statement, append(args, claim.Owner, until, now, now, now)...)
	} else {
		rows, err = storage.Select[row](ctx, s.db.Writer(), fmt.Sprintf(claimDue, s.db.SkipLocked()),
			claim.Kind, now, now, storage.At(createdAfter), claim.Limit, claim.Owner, until)
	}

	if err != nil {
		return nil, fmt.Errorf("claiming operations: %w", err)
	}

	return s.withAttempts(ctx, rows, claim.Pending)
}

// claimPending returns the claimPending statement and its arguments, up to and including the limit. It adds the condition for
// CreatedAfter only if CreatedAfter is set, because SQLite does not use the index on the turns for a query with this condition.
func (s *Store) claimPending(claim process.Claim) (string, []any) {
	if claim.CreatedAfter.IsZero() {
		return fmt.Sprintf(claimPending, "", s.db.SkipLocked()), []any{claim.Kind, claim.Limit}
	}

	return fmt.Sprintf(claimPending, " AND candidate.created_at >= ?", s.db.SkipLocked()),
		[]any{claim.Kind, storage.At(claim.CreatedAfter), claim.Limit}
}

// attemptRow is a row of step_attempts.
type attemptRow struct {
	OperationID string       `db:"operation_id"`
	Stage       string       `db:"stage"`
	Step        string       `db:"step"`
	Number      int          `db:"number"`
	FirstAt     storage.Time `db:"first_at"`
	LastAt      storage.Time `db:"last_at"`
	Failures    int          `db:"failures"`
	FailingAt   storage.Time `db:"failing_since"`
	LastError   string       `db:"last_error"`
}

// withAttempts adds the step attempts to claimed operations. It reads them only after the claim has been committed. This is safe,
// because only the holder of a lease changes them. For fresh operations, which have no attempts, it does not read anything. If
// reading fails, the leases expire and the operations are claimed again.
func (s *Store) withAttempts(ctx context.Context, rows []row, fresh bool) ([]process.Claimed, error) {
	ids := make([]string, 0, len(rows))
	for _, row := range rows {
		ids = append(ids, row.ID)
	}

	attempts := map[string][]process.Attempt{}

	var stored []attemptRow

	if len(ids) > 0 && !fresh {
		var err error

		if stored, err = storage.Select[attemptRow](ctx, s.db.Reader(),
			`SELECT operation_id, stage, step, number, first_at, last_at, failures, failing_since, last_error
			FROM step_attempts WHERE operation_id IN (?)`, ids); err != nil {
			return nil, fmt.Errorf("reading the attempts of claimed operations: %w", err)
		}
	}

	for _, row := range stored {
		attempts[row.OperationID] = append(attempts[row.OperationID], process.Attempt{
			Stage: row.Stage, Step: row.Step, Number: row.Number,
			First: row.FirstAt.Time, Last: row.LastAt.Time,
			Failures: row.Failures, FailingSince: row.FailingAt.Time, LastError: row.LastError,
		})
	}

	claimed := make([]process.Claimed, 0, len(rows))

	for _, row := range rows {
		record := row.record()

		var unreadable error

		record.Payload, unreadable = s.open(row.ID, row.Payload)

		claimed = append(claimed, process.Claimed{
			Record: record, Attempts: attempts[row.ID], TakenFrom: row.LeaseTakenFrom, Unreadable: unreadable,
		})
	}

	return claimed, nil
}

// renewLeases locks rows in the order of their IDs, like every statement on several rows, to avoid deadlocks. It does not compare
// fences. Instead, Renew compares them afterwards, because the replica may have lost an operation and claimed it again while the
// renewal was in progress.
const renewLeases = `UPDATE operations SET lease_until = ? WHERE id IN (
	SELECT id FROM operations WHERE lease_owner = ? AND id IN (?) ORDER BY id%s
) RETURNING id, fence, state`

// renewedRow is a renewed lease with the state of its operation.
type renewedRow struct {
	ID    string        `db:"id"`
	Fence int64         `db:"fence"`
	State process.State `db:"state"`
}

// Renew implements process.Store. The statement that extends the leases also returns the states of the operations, so that a run
// notices its cancellation without a separate query.
func (s *Store) Renew(ctx context.Context, renewal process.Renewal) (map[string]process.State, error) {
	states := make(map[string]process.State, len(renewal.Operations))
	ids := make([]string, 0, len(renewal.Operations))
	fences := make(map[string]int64, len(renewal.Operations))

	for _, operation := range renewal.Operations {
		ids = append(ids, operation.OperationID)
		fences[operation.OperationID] = operation.Fence
	}

	if len(ids) == 0 {
		return states, nil
	}

	err := s.db.InTx(ctx, func(tx storage.Tx) error {
		renewed, err := storage.Select[renewedRow](ctx, tx, fmt.Sprintf(renewLeases, s.db.ForUpdate()),
			storage.At(renewal.Until), renewal.Owner, ids)
		if err != nil {
			return err
		}

		for _, row := range renewed {
			if row.Fence == fences[row.ID] {
				states[row.ID] = row.State
			}
		}

		return recordSteps(ctx, tx, renewal.Operations, states)
	})
	if err != nil {
		return nil, fmt.Errorf("renewing leases: %w", err)
	}

	return states, nil
}

// recordSteps stores the current steps in the operations' rows, for users and operators. A step that ends before the next renewal
// is never stored, which saves most of these writes.
func recordSteps(ctx context.Context, tx storage.Tx, leased []process.LeasedOperation, states map[string]process.State) error {
	for _, operation := range leased {
		if _, ours := states[operation.OperationID]; !ours || !operation.Changed {
			continue
		}

		if _, err := storage.Exec(ctx, tx, `UPDATE operations SET stage = ?, step = ?, step_began_at = ? WHERE id = ?`,
			operation.Stage, operation.Step, storage.At(operation.StepBegan), operation.OperationID); err != nil {
			return err
		}
	}

	return nil
}

// UnfinishedKinds implements process.Store.
func (s *Store) UnfinishedKinds(ctx context.Context) ([]string, error) {
	kinds, err := storage.Select[string](ctx, s.db.Reader(),
		`SELECT kind FROM operations WHERE state = 'pending'
		UNION SELECT kind FROM operations WHERE state IN ('in progress', 'canceling')`)
	if err != nil {
		return nil, fmt.Errorf("reading the kinds of unfinished operations: %w", err)
	}

	return kinds, nil
}

// expirePending ends pending operations. It chooses rows in the order of the index on pending operations, so that PostgreSQL uses
// this index. It skips rows that another replica is claiming or expiring. The comment on claimPending explains why the CTE is
// materialized.
const expirePending = `WITH chosen AS MATERIALIZED (
	SELECT id FROM operations WHERE state = 'pending' AND created_at < ? ORDER BY kind, turn, created_at LIMIT ?%s
)
UPDATE operations SET
	state = 'failed', problem_message = ?, problem_reason = ?, problem_component = ?, updated_at = ?, state_changed_at = ?, finished_at = ?
WHERE id IN (SELECT id FROM chosen) RETURNING ` + status

// ExpirePending implements process.Store.
func (s *Store) ExpirePending(ctx context.Context, expiry process.Expiry) ([]process.Record, error) {
	var expired []row

	now, problem := storage.At(expiry.Now), expiry.Problem

	err := s.db.InTx(ctx, func(tx storage.Tx) error {
		var err error

		expired, err = storage.Select[row](ctx, tx, fmt.Sprintf(expirePending, s.db.SkipLocked()),
			storage.At(expiry.Before), expiry.Limit, problem.Message, problem.Reason, problem.Component, now, now, now)
		if err != nil {
			return err
		}

		for _, ended := range expired {
			if err := appendTimeline(ctx, tx, ended.ID, process.Entry{
				Began: expiry.Now, End: expiry.Now, Outcome: process.OperationFailed, Message: problem.Message,
			}); err != nil {
				return err
			}
		}

		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("expiring pending operations: %w", err)
	}

	return records(expired), nil
}
