package operations

import (
	"github.com/environment-broker/environment-broker/process"
	"github.com/environment-broker/environment-broker/storage"
)

// lastLine picks the last line of an operation where it tells the same of an attempt.
const lastLine = `operation_id = ? AND seq = (SELECT MAX(seq) FROM timeline WHERE operation_id = ?)
	AND stage = ? AND step = ? AND outcome = ? AND message = ?`

// foldIntoLast lengthens the last line of the timeline when that tells the same of the attempt before.
const foldIntoLast = `UPDATE timeline SET
	first_attempt = CASE WHEN first_attempt = 0 THEN attempt ELSE first_attempt END,
	attempt = ?, ended_at = ?, next_run_at = ?
WHERE EXISTS (SELECT 1 FROM first) AND ` + lastLine + ` AND attempt = ?`

// unlessFolded keeps the line out that was folded. It holds before the fold, which PostgreSQL looks at, as well as after it.
const unlessFolded = ` AND NOT EXISTS (SELECT 1 FROM timeline WHERE ` + lastLine + ` AND attempt IN (?, ?))`

// comesBack tells of an attempt that is like the one before it, perhaps: who polls for a day leaves one line and not thousands.
func comesBack(entry process.Entry) bool {
	return entry.Attempt > 1 && (entry.Outcome == process.Waiting || entry.Outcome == process.Retrying)
}

// fold is the change that adds an attempt to the line of the attempts before it, where there is one.
func fold(operationID string, entry process.Entry) storage.Statement {
	return storage.Statement{
		Text: foldIntoLast,
		Args: append([]any{entry.Attempt, storage.At(entry.End), storage.At(entry.NextRun)},
			sameAsLast(operationID, entry, entry.Attempt-1)...),
	}
}

// sameAsLast are the arguments of lastLine, and the attempts that it may tell of.
func sameAsLast(operationID string, entry process.Entry, attempts ...int) []any {
	args := []any{operationID, operationID, entry.Stage, entry.Step, string(entry.Outcome), entry.Message}
	for _, attempt := range attempts {
		args = append(args, attempt)
	}

	return args
}
