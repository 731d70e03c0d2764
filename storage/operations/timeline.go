package operations

import (
	"context"
	"fmt"
	"slices"

	"github.com/environment-broker/environment-broker/process"
	"github.com/environment-broker/environment-broker/storage"
)

// timelineRow is a row of timeline.
type timelineRow struct {
	Seq       int64        `db:"seq"`
	Stage     string       `db:"stage"`
	Step      string       `db:"step"`
	Attempt   int          `db:"attempt"`
	BeganAt   storage.Time `db:"began_at"`
	EndedAt   storage.Time `db:"ended_at"`
	Outcome   string       `db:"outcome"`
	Message   string       `db:"message"`
	NextRunAt storage.Time `db:"next_run_at"`
	// FirstAttempt is the number of the first attempt if the entry combines several attempts. Otherwise it is 0.
	FirstAttempt int `db:"first_attempt"`
}

func (r timelineRow) entry() process.Entry {
	return process.Entry{
		Stage: r.Stage, Step: r.Step, FirstAttempt: r.FirstAttempt, Attempt: r.Attempt, Began: r.BeganAt.Time, End: r.EndedAt.Time,
		Outcome: process.Outcome(r.Outcome), Message: r.Message, NextRun: r.NextRunAt.Time,
	}
}

// insertEntry appends an entry to the timeline. It must run in a CTE whose first statement returns the operation's state (see
// storage.DB.ExecCTE). Its format verbs stand for the number to add to the last sequence number, the outcome, and an additional
// condition.
const insertEntry = `INSERT INTO timeline
	(operation_id, seq, stage, step, attempt, began_at, ended_at, outcome, message, next_run_at)
	SELECT ?, (SELECT COALESCE(MAX(seq), 0) FROM timeline WHERE operation_id = ?) + %d, ?, ?, ?, ?, ?, %s, ?, ? FROM first WHERE TRUE%s`

// finalOutcome is the SQL expression for the outcome of an operation's last entry. A canceling operation ends as canceled,
// whatever its run has reported.
const finalOutcome = `CASE WHEN value = 'canceled' THEN '` + string(process.OperationCanceled) + `' ELSE ? END`

// insertEntries returns the statements that append the entries to the timeline. If the first entry repeats the last stored entry,
// the statements merge the two.
//
// The statements belong to a CTE (see storage.DB.ExecCTE). The first statement of the CTE must write the operation's row, so that
// no other transaction appends entries at the same time. The sequence number of an entry is the highest stored number plus the
// entry's position. PostgreSQL runs the CTE as one statement, so the highest number is the same for all entries. SQLite runs the
// statements one by one, so the highest number grows in between, and the sequence numbers have gaps.
func insertEntries(operationID string, entries []process.Entry) []storage.Statement {
	var statements []storage.Statement

	for number, entry := range entries {
		var (
			outcome       = "?"
			condition     string
			conditionArgs []any
		)

		if entry.Outcome == process.OperationSucceeded || entry.Outcome == process.OperationFailed {
			outcome = finalOutcome
		}

		if number == 0 && repeatable(entry) {
			statements = append(statements, extension(operationID, entry))
			condition, conditionArgs = unlessExtended, lastEntryArgs(operationID, entry, entry.Attempt-1, entry.Attempt)
		}

		statements = append(statements, storage.Statement{
			Text: fmt.Sprintf(insertEntry, number+1, outcome, condition),
			Args: slices.Concat([]any{
				operationID, operationID, entry.Stage, entry.Step, entry.Attempt, storage.At(entry.Began), storage.At(entry.End),
				string(entry.Outcome), entry.Message, storage.At(entry.NextRun),
			}, conditionArgs),
		})
	}

	return statements
}

// appendTimeline appends entries in the caller's transaction, which must have written the operation's row.
func appendTimeline(ctx context.Context, tx storage.Tx, operationID string, entries ...process.Entry) error {
	for _, statement := range insertEntries(operationID, entries) {
		if err := storage.ApplyAfter(ctx, tx, "", statement); err != nil {
			return fmt.Errorf("appending to the timeline: %w", err)
		}
	}

	return nil
}

// readTimeline selects a timeline. For most operations, no entry is stored when they are accepted. readTimeline then derives the
// first entry from the operation's row.
const readTimeline = `SELECT 0 AS seq, '' AS stage, '' AS step, 0 AS first_attempt, 0 AS attempt, created_at AS began_at,
		created_at AS ended_at, 'accepted' AS outcome, kind AS message, CAST(NULL AS TIMESTAMPTZ) AS next_run_at
	FROM operations WHERE id = ? AND timeline_removed_at IS NULL
		AND NOT EXISTS (SELECT 1 FROM timeline WHERE operation_id = operations.id AND outcome = 'accepted')
	UNION ALL
	SELECT seq, stage, step, first_attempt, attempt, began_at, ended_at, outcome, message, next_run_at
	FROM timeline WHERE operation_id = ? ORDER BY seq`

// Timeline returns the timeline of an operation, oldest entry first. It is empty if the operation is unknown, or if retention or
// an erasure has removed the timeline.
func (s *Store) Timeline(ctx context.Context, operationID string) ([]process.Entry, error) {
	rows, err := storage.Select[timelineRow](ctx, s.db.Reader(), readTimeline, operationID, operationID)
	if err != nil {
		return nil, fmt.Errorf("reading the timeline of operation %s: %w", operationID, err)
	}

	entries := make([]process.Entry, 0, len(rows))
	for _, row := range rows {
		entries = append(entries, row.entry())
	}

	return entries, nil
}
