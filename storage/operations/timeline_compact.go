package operations

import (
	"github.com/environment-broker/environment-broker/process"
	"github.com/environment-broker/environment-broker/storage"
)

// lastEntry selects the last entry of an operation if it has the same step, outcome and message.
const lastEntry = `operation_id = ? AND seq = (SELECT MAX(seq) FROM timeline WHERE operation_id = ?)
	AND stage = ? AND step = ? AND outcome = ? AND message = ?`

// extendLast adds an attempt to the last entry of the timeline if that is the equal entry of the attempt before.
const extendLast = `UPDATE timeline SET
	first_attempt = CASE WHEN first_attempt = 0 THEN attempt ELSE first_attempt END,
	attempt = ?, ended_at = ?, next_run_at = ?
WHERE EXISTS (SELECT 1 FROM first) AND ` + lastEntry + ` AND attempt = ?`

// unlessExtended suppresses the insertion of an entry that extendLast has added. It holds before and after that
// update, because PostgreSQL evaluates both parts of the statement on the rows before it.
const unlessExtended = ` AND NOT EXISTS (SELECT 1 FROM timeline WHERE ` + lastEntry + ` AND attempt IN (?, ?))`

// repeatable reports whether the entry may equal that of the attempt before. A step that polls for a day thereby leaves one entry and not
// thousands.
func repeatable(entry process.Entry) bool {
	return entry.Attempt > 1 && (entry.Outcome == process.Waiting || entry.Outcome == process.Retrying)
}

// extension returns the statement that adds an attempt to the entry of the attempts before it, if there is one.
func extension(operationID string, entry process.Entry) storage.Statement {
	return storage.Statement{
		Text: extendLast,
		Args: append([]any{entry.Attempt, storage.At(entry.End), storage.At(entry.NextRun)},
			lastEntryArgs(operationID, entry, entry.Attempt-1)...),
	}
}

// lastEntryArgs returns the arguments of lastEntry, and the attempts that it may have.
func lastEntryArgs(operationID string, entry process.Entry, attempts ...int) []any {
	args := []any{operationID, operationID, entry.Stage, entry.Step, string(entry.Outcome), entry.Message}
	for _, attempt := range attempts {
		args = append(args, attempt)
	}

	return args
}
