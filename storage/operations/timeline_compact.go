package operations

import (
	"github.com/environment-broker/environment-broker/process"
	"github.com/environment-broker/environment-broker/storage"
)

// lastEntry is a condition that matches the last entry of an operation's timeline if this entry has the given stage, step,
// outcome and message.
const lastEntry = `operation_id = ? AND seq = (SELECT MAX(seq) FROM timeline WHERE operation_id = ?)
	AND stage = ? AND step = ? AND outcome = ? AND message = ?`

// extendLast makes the last entry of the timeline include another attempt. It does so only if this entry has the same step,
// outcome and message and ends with the preceding attempt.
const extendLast = `UPDATE timeline SET
	first_attempt = CASE WHEN first_attempt = 0 THEN attempt ELSE first_attempt END,
	attempt = ?, ended_at = ?, next_run_at = ?
WHERE EXISTS (SELECT 1 FROM first) AND ` + lastEntry + ` AND attempt = ?`

// unlessExtended prevents the insertion of an entry that extendLast has merged into the last one. Its condition matches the last
// entry both before and after extendLast: SQLite executes extendLast before the insertion, but PostgreSQL evaluates both
// statements on the rows as they were before.
const unlessExtended = ` AND NOT EXISTS (SELECT 1 FROM timeline WHERE ` + lastEntry + ` AND attempt IN (?, ?))`

// repeatable reports whether the entry may be merged with the entry of the preceding attempt. Because of such merges, a step that
// polls for a day leaves one entry instead of thousands.
func repeatable(entry process.Entry) bool {
	return entry.Attempt > 1 && (entry.Outcome == process.Waiting || entry.Outcome == process.Retrying)
}

// extension returns the statement extendLast with the arguments for the entry.
func extension(operationID string, entry process.Entry) storage.Statement {
	return storage.Statement{
		Text: extendLast,
		Args: append([]any{entry.Attempt, storage.At(entry.End), storage.At(entry.NextRun)},
			lastEntryArgs(operationID, entry, entry.Attempt-1)...),
	}
}

// lastEntryArgs returns the arguments of lastEntry, followed by the attempt numbers that the last entry may have.
func lastEntryArgs(operationID string, entry process.Entry, attempts ...int) []any {
	args := []any{operationID, operationID, entry.Stage, entry.Step, string(entry.Outcome), entry.Message}
	for _, attempt := range attempts {
		args = append(args, attempt)
	}

	return args
}
