package operations

import (
	"database/sql/driver"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/environment-broker/environment-broker/process"
	"github.com/environment-broker/environment-broker/storage"
)

const (
	// status lists all columns except the sealed payload, which only claims and the method Payload read.
	status = `id, kind, instance_id, position, tenant, predecessor_id, state, description, problem_message, problem_detail, problem_reason,
		problem_component, progress, finished_stages, skipped_steps, skip_step, skip_reason, stage, step, step_began_at,
		waiting_for, created_at, updated_at, started_at, finished_at, next_run_at,
		lease_owner, lease_taken_from, lease_until, fence, timeline_removed_at, ordered_by, audit, trace, visible_to`
	// columns lists all columns of row.
	columns = status + `, payload`
)

// forecast lists the columns that the forecast of an operation's end needs: the columns in status, and step_since.
const forecast = status + `, ` + stepSince + ` AS step_since`

// row is a row of operations. The columns turn, woken and state_changed_at have no field, because they are used only in SQL
// statements.
type row struct {
	ID               string       `db:"id"`
	Kind             string       `db:"kind"`
	InstanceID       string       `db:"instance_id"`
	Position         int64        `db:"position"`
	Tenant           string       `db:"tenant"`
	PredecessorID    string       `db:"predecessor_id"`
	State            string       `db:"state"`
	Description      string       `db:"description"`
	ProblemMessage   string       `db:"problem_message"`
	ProblemDetail    string       `db:"problem_detail"`
	ProblemReason    string       `db:"problem_reason"`
	ProblemComponent string       `db:"problem_component"`
	Progress         string       `db:"progress"`
	FinishedStages   names        `db:"finished_stages"`
	SkippedSteps     names        `db:"skipped_steps"`
	SkipStep         string       `db:"skip_step"`
	SkipReason       string       `db:"skip_reason"`
	Stage            string       `db:"stage"`
	Step             string       `db:"step"`
	StepBeganAt      storage.Time `db:"step_began_at"`
	StepSince        storage.Time `db:"step_since"` // only in queries for forecast
	WaitingFor       string       `db:"waiting_for"`
	Payload          string       `db:"payload"`
	CreatedAt        storage.Time `db:"created_at"`
	UpdatedAt        storage.Time `db:"updated_at"`
	StartedAt        storage.Time `db:"started_at"`
	FinishedAt       storage.Time `db:"finished_at"`
	NextRunAt        storage.Time `db:"next_run_at"`
	LeaseOwner       string       `db:"lease_owner"`
	LeaseTakenFrom   string       `db:"lease_taken_from"`
	LeaseUntil       storage.Time `db:"lease_until"`
	Fence            int64        `db:"fence"`
	TimelineRemoved  storage.Time `db:"timeline_removed_at"`
	OrderedBy        string       `db:"ordered_by"`
	Audit            string       `db:"audit"`
	Trace            string       `db:"trace"`
	VisibleTo        string       `db:"visible_to"`
}

// record converts the row to a Record without its payload.
func (r row) record() process.Record {
	return process.Record{
		ID:            r.ID,
		Kind:          r.Kind,
		InstanceID:    r.InstanceID,
		Position:      r.Position,
		Tenant:        r.Tenant,
		PredecessorID: r.PredecessorID,
		OrderedBy:     r.OrderedBy,
		Audit:         r.Audit,
		Trace:         r.Trace,
		VisibleTo:     r.VisibleTo,
		State:         process.State(r.State),
		Description:   r.Description,
		Problem: process.Problem{
			Message: r.ProblemMessage, Detail: r.ProblemDetail, Reason: r.ProblemReason, Component: r.ProblemComponent,
		},
		Progress:       r.Progress,
		FinishedStages: r.FinishedStages,
		SkippedSteps:   r.SkippedSteps,
		Skip:           process.Skip{Step: r.SkipStep, Reason: r.SkipReason},
		Stage:          r.Stage,
		Step:           r.Step,
		StepBegan:      r.StepBeganAt.Time,
		StepSince:      r.StepSince.Time,
		WaitingFor:     r.WaitingFor,
		CreatedAt:      r.CreatedAt.Time,
		UpdatedAt:      r.UpdatedAt.Time,
		StartedAt:      r.StartedAt.Time,
		FinishedAt:     r.FinishedAt.Time,
		NextRun:        r.NextRunAt.Time,
		Lease:          process.Lease{Owner: r.LeaseOwner, Until: r.LeaseUntil.Time, Fence: r.Fence},

		TimelineRemoved: r.TimelineRemoved.Time,
	}
}

func records(rows []row) []process.Record {
	records := make([]process.Record, 0, len(rows))
	for _, row := range rows {
		records = append(records, row.record())
	}

	return records
}

// ErrSealed reports that no configured key can decrypt the data of an operation. Operators must add the missing key to
// APP_DATABASE_SECRET_KEYS.
var ErrSealed = errors.New("the data is sealed with an unknown key")

// open decrypts the payload of an operation, or returns ErrSealed.
func (s *Store) open(operationID, payload string) (json.RawMessage, error) {
	opened, err := s.keys.Open(payload, payloadPlace(operationID))
	if err != nil {
		return nil, fmt.Errorf("reading operation %s: %w: %w", operationID, ErrSealed, err)
	}

	return opened, nil
}

// names is a list of names, stored as JSON in one column. nil is stored as [].
type names []string

// Value implements driver.Valuer.
func (n names) Value() (driver.Value, error) {
	encoded, err := json.Marshal([]string(n))
	if err != nil {
		return nil, fmt.Errorf("encoding a list of names: %w", err)
	}

	if n == nil {
		return "[]", nil
	}

	return string(encoded), nil
}

// Scan implements sql.Scanner.
func (n *names) Scan(source any) error {
	var encoded []byte

	switch value := source.(type) {
	case string:
		encoded = []byte(value)
	case []byte:
		encoded = value
	default:
		return fmt.Errorf("decoding a list of names: unexpected type %T", source)
	}

	if err := json.Unmarshal(encoded, (*[]string)(n)); err != nil {
		return fmt.Errorf("decoding a list of names: %w", err)
	}

	return nil
}
