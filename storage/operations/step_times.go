package operations

import (
	"context"
	"fmt"
	"time"

	"github.com/environment-broker/environment-broker/storage"
)

// StepTime is the period from the start of a step's first attempt to the end of its last one.
type StepTime struct {
	OperationID string       `db:"operation_id"`
	Step        string       `db:"step"`
	BeganAt     storage.Time `db:"began_at"`
	EndedAt     storage.Time `db:"ended_at"`
}

// Took returns the length of the period.
func (s StepTime) Took() time.Duration { return s.EndedAt.Sub(s.BeganAt.Time) }

// StepTimes returns the periods of all steps in the timelines of the given operations, in no particular order. Pass at most the
// IDs of one page, because databases limit the number of parameters.
func (s *Store) StepTimes(ctx context.Context, ids []string) ([]StepTime, error) {
	if len(ids) == 0 {
		return nil, nil
	}

	times, err := storage.Select[StepTime](ctx, s.db.Reader(), `SELECT operation_id, step, MIN(began_at) AS began_at, MAX(ended_at) AS ended_at
		FROM timeline WHERE operation_id IN (?) AND step <> '' GROUP BY operation_id, step`, ids)
	if err != nil {
		return nil, fmt.Errorf("reading the times of steps: %w", err)
	}

	return times, nil
}
