package operations

import (
	"context"
	"fmt"
	"strconv"
	"strings"

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

// timelineColumns is how many values a line is made of.
const timelineColumns = 10

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

	values, args := make([]string, 0, len(entries)), make([]any, 0, len(entries)*timelineColumns)

	for number, entry := range entries {
		values = append(values, `(?, (SELECT COALESCE(MAX(seq), 0) FROM timeline WHERE operation_id = ?) + `+strconv.Itoa(number+1)+
			`, ?, ?, ?, ?, ?, ?, ?, ?)`)
		args = append(args, operationID, operationID, entry.Stage, entry.Step, entry.Attempt, storage.At(entry.Began),
			storage.At(entry.End), string(entry.Outcome), entry.Message, storage.At(entry.NextRun))
	}

	if _, err := storage.Exec(ctx, tx, `INSERT INTO timeline
		(operation_id, seq, stage, step, attempt, began_at, ended_at, outcome, message, next_run_at)
		VALUES `+strings.Join(values, ", "), args...); err != nil {
		return fmt.Errorf("appending to the timeline: %w", err)
	}

	return nil
}
