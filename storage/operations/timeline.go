package operations

import (
	"context"
	"fmt"
	"slices"

	"github.com/environment-broker/environment-broker/process"
	"github.com/environment-broker/environment-broker/storage"
)

// timelineRow is a line of the timeline as the table has it.
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
	// FirstAttempt is 0 in a line of one attempt.
	FirstAttempt int `db:"first_attempt"`
}

func (r timelineRow) entry() process.Entry {
	return process.Entry{
		Stage: r.Stage, Step: r.Step, FirstAttempt: r.FirstAttempt, Attempt: r.Attempt, Began: r.BeganAt.Time, End: r.EndedAt.Time,
		Outcome: process.Outcome(r.Outcome), Message: r.Message, NextRun: r.NextRunAt.Time,
	}
}

// insertLine adds a line behind those that are there, in a chain of changes whose first one returns the operation's state. It is completed
// with the outcome, with how far behind the last line it stands, and with a condition.
const insertLine = `INSERT INTO timeline
	(operation_id, seq, stage, step, attempt, began_at, ended_at, outcome, message, next_run_at)
	SELECT ?, (SELECT COALESCE(MAX(seq), 0) FROM timeline WHERE operation_id = ?) + %d, ?, ?, ?, ?, ?, %s, ?, ? FROM first WHERE TRUE%s`

// endedAs is the outcome of an operation's end: one that was to be canceled was canceled.
const endedAs = `CASE WHEN value = 'canceled' THEN '` + string(process.OperationCanceled) + `' ELSE ? END`

// lines are the changes that add the entries to the timeline. The first of the chain has written the operation's row, so nobody else appends
// at the same time. The numbers of the lines grow; where the changes are made one after the other there may be gaps between them.
func lines(operationID string, entries []process.Entry) []storage.Statement {
	var changes []storage.Statement

	for number, entry := range entries {
		var (
			outcome   = "?"
			condition string
			known     []any
		)

		if entry.Outcome == process.OperationSucceeded || entry.Outcome == process.OperationFailed {
			outcome = endedAs
		}

		if number == 0 && comesBack(entry) {
			changes = append(changes, fold(operationID, entry))
			condition, known = unlessFolded, sameAsLast(operationID, entry, entry.Attempt-1, entry.Attempt)
		}

		changes = append(changes, storage.Statement{
			Text: fmt.Sprintf(insertLine, number+1, outcome, condition),
			Args: slices.Concat([]any{
				operationID, operationID, entry.Stage, entry.Step, entry.Attempt, storage.At(entry.Began), storage.At(entry.End),
				string(entry.Outcome), entry.Message, storage.At(entry.NextRun),
			}, known),
		})
	}

	return changes
}

// appendTimeline adds lines inside the caller's transaction, which has written the operation's row before.
func appendTimeline(ctx context.Context, tx storage.Tx, operationID string, entries ...process.Entry) error {
	for _, line := range lines(operationID, entries) {
		if err := storage.ApplyAfter(ctx, tx, "", line); err != nil {
			return fmt.Errorf("appending to the timeline: %w", err)
		}
	}

	return nil
}
