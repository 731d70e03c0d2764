package operations

import (
	"github.com/environment-broker/environment-broker/process"
	"github.com/environment-broker/environment-broker/storage"
)

// stepSince is the SQL expression for the time at which the first attempt of the current step started. An attempt is stored only
// after the step has waited or failed.
const stepSince = `COALESCE((SELECT first_at FROM step_attempts
	WHERE operation_id = operations.id AND step_attempts.step = operations.step), operations.step_began_at)`

// JoinedColumns lists the columns of Joined, for queries that join the rows of another table with operations.
const JoinedColumns = `operations.id AS operation_id, operations.kind AS operation_kind, operations.state AS operation_state,
	operations.description AS operation_description, operations.problem_message AS operation_problem_message,
	operations.problem_detail AS operation_problem_detail, operations.problem_reason AS operation_problem_reason,
	operations.problem_component AS operation_problem_component,
	operations.progress AS operation_progress, operations.stage AS operation_stage, operations.step AS operation_step,
	` + stepSince + ` AS operation_step_since,
	operations.created_at AS operation_created_at, operations.updated_at AS operation_updated_at,
	operations.started_at AS operation_started_at, operations.finished_at AS operation_finished_at`

// JoinNewest returns the SQL fragment that joins each row of page, whose column id is the ID of an instance or runtime, with its
// newest operation.
func JoinNewest(db *storage.DB) string {
	return db.JoinFirst(`operations`, `operations.instance_id = page.id`, `operations.position DESC`)
}

// Joined contains the fields of an operation that lists show. Queries select it together with the rows of another table.
type Joined struct {
	ID          string       `db:"operation_id"`
	Kind        string       `db:"operation_kind"`
	State       string       `db:"operation_state"`
	Description string       `db:"operation_description"`
	Message     string       `db:"operation_problem_message"`
	Detail      string       `db:"operation_problem_detail"`
	Reason      string       `db:"operation_problem_reason"`
	Component   string       `db:"operation_problem_component"`
	Progress    string       `db:"operation_progress"`
	Stage       string       `db:"operation_stage"`
	Step        string       `db:"operation_step"`
	StepSince   storage.Time `db:"operation_step_since"`
	CreatedAt   storage.Time `db:"operation_created_at"`
	UpdatedAt   storage.Time `db:"operation_updated_at"`
	StartedAt   storage.Time `db:"operation_started_at"`
	FinishedAt  storage.Time `db:"operation_finished_at"`
}

// Record returns the operation as a record of the instance. Fields that are not in Joined are zero.
func (j Joined) Record(instanceID string) process.Record {
	return process.Record{
		ID: j.ID, Kind: j.Kind, InstanceID: instanceID, State: process.State(j.State), Description: j.Description,
		Problem:  process.Problem{Message: j.Message, Detail: j.Detail, Reason: j.Reason, Component: j.Component},
		Progress: j.Progress, Stage: j.Stage, Step: j.Step, StepSince: j.StepSince.Time,
		CreatedAt: j.CreatedAt.Time, UpdatedAt: j.UpdatedAt.Time, StartedAt: j.StartedAt.Time, FinishedAt: j.FinishedAt.Time,
	}
}
