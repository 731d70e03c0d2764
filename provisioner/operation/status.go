package operation

import (
	"cmp"

	"github.com/environment-broker/environment-broker/internal/failure"
	"github.com/environment-broker/environment-broker/process"
)

// Status is an operation as clients see it.
type Status struct {
	ID, RuntimeID string
	// Kind is a public kind; see PublicKind.
	Kind string
	// State is one of Pending, InProgress, Succeeded and Failed.
	State process.State
	// Message describes the progress or the outcome to people.
	Message string
	// Problem is the cause of a failure or, while the engine retries a step, the error of the last attempt.
	Problem process.Problem
}

// StatusOf returns the status of a stored operation. The API has no state for canceled operations, so they are reported as
// failed, with a problem that mentions the cancellation. The removal of a runtime cancels its earlier operations, and operators
// can cancel operations through the operator API.
func StatusOf(record process.Record) Status {
	status := Status{
		ID: record.ID, RuntimeID: record.InstanceID, Kind: PublicKind(record.Kind), State: PublicState(record.State),
		Problem: record.Problem,
	}

	if record.State == process.Canceled {
		status.Problem = process.Problem{
			Message: "canceled by an operator or because the runtime is being deprovisioned", Reason: "canceled", Component: failure.ComponentProvisioner,
		}
	}

	status.Message = cmp.Or(status.Problem.ForOperators(), progress(record))

	return status
}

// StatesOf is the inverse of PublicState: it returns the stored states that the API shows as the public state.
func StatesOf(public process.State) []process.State {
	switch public {
	case process.InProgress:
		return []process.State{process.InProgress, process.Canceling}
	case process.Failed:
		return []process.State{process.Failed, process.Canceled}
	default:
		return []process.State{public}
	}
}

// progress returns the message for users about an operation that has no problem.
func progress(record process.Record) string {
	switch record.State {
	case process.Succeeded:
		return "Operation succeeded"
	case process.Pending:
		return "Operation accepted"
	default:
		message := "Operation in progress. Stage " + cmp.Or(record.Stage, "not started")
		if record.Progress != "" {
			message += ": " + record.Progress
		}

		return message
	}
}

// PublicState returns the state that the API shows for a stored state: in progress for canceling, failed for canceled, and every
// other state unchanged.
func PublicState(state process.State) process.State {
	switch state {
	case process.Canceling:
		return process.InProgress
	case process.Canceled:
		return process.Failed
	default:
		return state
	}
}
