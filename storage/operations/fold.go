package operations

import (
	"context"
	"fmt"

	"github.com/environment-broker/environment-broker/process"
	"github.com/environment-broker/environment-broker/storage"
)

// foldIntoLast lengthens the last line of the timeline when that tells the same of the attempt before.
const foldIntoLast = `UPDATE timeline SET
	first_attempt = CASE WHEN first_attempt = 0 THEN attempt ELSE first_attempt END,
	attempt = ?, ended_at = ?, next_run_at = ?
WHERE operation_id = ? AND seq = (SELECT MAX(seq) FROM timeline WHERE operation_id = ?)
	AND stage = ? AND step = ? AND outcome = ? AND message = ? AND attempt = ?`

// fold tries to add an attempt that comes back to the line of the attempts before it: who polls for a day leaves one line and not
// thousands. It reports false where the entry needs a line of its own.
func fold(ctx context.Context, tx storage.Tx, operationID string, entry process.Entry) (bool, error) {
	comesBack := entry.Outcome == process.Waiting || entry.Outcome == process.Retrying
	if !comesBack || entry.Attempt <= 1 {
		return false, nil
	}

	folded, err := storage.Exec(ctx, tx, foldIntoLast, entry.Attempt, storage.At(entry.End), storage.At(entry.NextRun),
		operationID, operationID, entry.Stage, entry.Step, string(entry.Outcome), entry.Message, entry.Attempt-1)
	if err != nil {
		return false, fmt.Errorf("lengthening the last line of the timeline: %w", err)
	}

	return folded == 1, nil
}
