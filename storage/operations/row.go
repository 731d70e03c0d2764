package operations

import (
	"database/sql/driver"
	"encoding/json"
	"fmt"

	"github.com/environment-broker/environment-broker/process"
	"github.com/environment-broker/environment-broker/storage"
)

// row is an operation as the table has it.
type row struct {
	ID               string       `db:"id"`
	Kind             string       `db:"kind"`
	InstanceID       string       `db:"instance_id"`
	Position         int64        `db:"position"`
	PredecessorID    string       `db:"predecessor_id"`
	State            string       `db:"state"`
	Description      string       `db:"description"`
	ProblemMessage   string       `db:"problem_message"`
	ProblemReason    string       `db:"problem_reason"`
	ProblemComponent string       `db:"problem_component"`
	FinishedStages   names        `db:"finished_stages"`
	SkippedSteps     names        `db:"skipped_steps"`
	Stage            string       `db:"stage"`
	Step             string       `db:"step"`
	StepBeganAt      storage.Time `db:"step_began_at"`
	WaitingFor       string       `db:"waiting_for"`
	Woken            bool         `db:"woken"`
	Payload          string       `db:"payload"`
	CreatedAt        storage.Time `db:"created_at"`
	UpdatedAt        storage.Time `db:"updated_at"`
	StateChangedAt   storage.Time `db:"state_changed_at"`
	StartedAt        storage.Time `db:"started_at"`
	FinishedAt       storage.Time `db:"finished_at"`
	NextRunAt        storage.Time `db:"next_run_at"`
	LeaseOwner       string       `db:"lease_owner"`
	LeaseTakenFrom   string       `db:"lease_taken_from"`
	LeaseUntil       storage.Time `db:"lease_until"`
	Fence            int64        `db:"fence"`
	TimelineRemoved  storage.Time `db:"timeline_removed_at"`
}

// record opens the payload. When that fails, because a key is gone, the rest of the record is returned beside the error.
func (s *Store) record(row row) (process.Record, error) {
	payload, err := s.keys.Open(row.Payload, payloadPlace(row.ID))
	if err != nil {
		err = fmt.Errorf("reading operation %s: %w", row.ID, err)
	}

	return process.Record{
		ID:            row.ID,
		Kind:          row.Kind,
		InstanceID:    row.InstanceID,
		Position:      row.Position,
		PredecessorID: row.PredecessorID,
		State:         process.State(row.State),
		Description:   row.Description,
		Problem: process.Problem{
			Message: row.ProblemMessage, Reason: row.ProblemReason, Component: row.ProblemComponent,
		},
		FinishedStages: row.FinishedStages,
		SkippedSteps:   row.SkippedSteps,
		Stage:          row.Stage,
		Step:           row.Step,
		StepBegan:      row.StepBeganAt.Time,
		WaitingFor:     row.WaitingFor,
		Payload:        payload,
		CreatedAt:      row.CreatedAt.Time,
		UpdatedAt:      row.UpdatedAt.Time,
		StartedAt:      row.StartedAt.Time,
		FinishedAt:     row.FinishedAt.Time,
		NextRun:        row.NextRunAt.Time,
		Lease:          process.Lease{Owner: row.LeaseOwner, Until: row.LeaseUntil.Time, Fence: row.Fence},

		TimelineRemoved: row.TimelineRemoved.Time,
	}, err
}

// records are for whoever looks at operations: one whose payload cannot be opened is shown without it.
func (s *Store) records(rows []row) []process.Record {
	records := make([]process.Record, 0, len(rows))

	for _, row := range rows {
		record, _ := s.record(row)
		records = append(records, record)
	}

	return records
}

// names is a list in one column, as JSON.
type names []string

// Value returns the JSON.
func (n names) Value() (driver.Value, error) {
	encoded, err := json.Marshal([]string(n))
	if err != nil {
		return nil, fmt.Errorf("storing names: %w", err)
	}

	if n == nil {
		return "[]", nil
	}

	return string(encoded), nil
}

// Scan reads the JSON.
func (n *names) Scan(source any) error {
	var encoded []byte

	switch value := source.(type) {
	case string:
		encoded = []byte(value)
	case []byte:
		encoded = value
	default:
		return fmt.Errorf("reading names: they are a %T", source)
	}

	if err := json.Unmarshal(encoded, (*[]string)(n)); err != nil {
		return fmt.Errorf("reading names: %w", err)
	}

	return nil
}
