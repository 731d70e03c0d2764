package operations

import (
	"context"
	"fmt"

	"github.com/environment-broker/environment-broker/process"
	"github.com/environment-broker/environment-broker/storage"
)

// timelineRow is a line of the timeline as the table has it.
type timelineRow struct {
	OperationID string       `db:"operation_id"`
	Seq         int64        `db:"seq"`
	Stage       string       `db:"stage"`
	Step        string       `db:"step"`
	Attempt     int          `db:"attempt"`
	BeganAt     storage.Time `db:"began_at"`
	EndedAt     storage.Time `db:"ended_at"`
	Outcome     string       `db:"outcome"`
	Message     string       `db:"message"`
	NextRunAt   storage.Time `db:"next_run_at"`
	// FirstAttempt is 0 in a line of one attempt.
	FirstAttempt int `db:"first_attempt"`
}

func (r timelineRow) entry() process.Entry {
	return process.Entry{
		Stage: r.Stage, Step: r.Step, FirstAttempt: r.FirstAttempt, Attempt: r.Attempt, Began: r.BeganAt.Time, End: r.EndedAt.Time,
		Outcome: process.Outcome(r.Outcome), Message: r.Message, NextRun: r.NextRunAt.Time,
	}
}

// appendTimeline adds lines behind those that are there. The caller's transaction has written the operation's row before, so
// nobody else appends at the same time.
func appendTimeline(ctx context.Context, tx storage.Tx, operationID string, entries ...process.Entry) error {
	if len(entries) == 0 {
		return nil
	}

	folded, err := fold(ctx, tx, operationID, entries[0])
	if err != nil {
		return err
	}

	if folded {
		entries = entries[1:]
	}

	if len(entries) == 0 {
		return nil
	}

	last, err := storage.Get[int64](ctx, tx, `SELECT COALESCE(MAX(seq), 0) FROM timeline WHERE operation_id = ?`, operationID)
	if err != nil {
		return fmt.Errorf("reading the end of the timeline: %w", err)
	}

	for i, entry := range entries {
		if err := insertEntry(ctx, tx, operationID, last+1+int64(i), entry); err != nil {
			return err
		}
	}

	return nil
}

// insertEntry adds the line with that number.
func insertEntry(ctx context.Context, tx storage.Tx, operationID string, seq int64, entry process.Entry) error {
	err := storage.InsertNamed(ctx, tx, `INSERT INTO timeline
		(operation_id, seq, stage, step, attempt, began_at, ended_at, outcome, message, next_run_at)
		VALUES (:operation_id, :seq, :stage, :step, :attempt, :began_at, :ended_at, :outcome, :message, :next_run_at)`,
		timelineRow{
			OperationID: operationID,
			Seq:         seq,
			Stage:       entry.Stage,
			Step:        entry.Step,
			Attempt:     entry.Attempt,
			BeganAt:     storage.At(entry.Began),
			EndedAt:     storage.At(entry.End),
			Outcome:     string(entry.Outcome),
			Message:     entry.Message,
			NextRunAt:   storage.At(entry.NextRun),
		})
	if err != nil {
		return fmt.Errorf("appending to the timeline: %w", err)
	}

	return nil
}
