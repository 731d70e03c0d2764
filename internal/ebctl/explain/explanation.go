package explain

import (
	"fmt"
	"slices"
	"time"

	"github.com/environment-broker/environment-broker/internal/ebctl/output"
	"github.com/environment-broker/environment-broker/internal/operatorapi"
	"github.com/environment-broker/environment-broker/process"
)

// Explanation explains an operation at a time.
type Explanation struct {
	// At is the time of the explanation, from which durations are computed.
	At          time.Time `json:"at"`
	OperationID string    `json:"operationID"`
	InstanceID  string    `json:"instanceID"`
	Kind        string    `json:"kind"`
	State       string    `json:"state"`
	// Summary is one sentence.
	Summary    string    `json:"summary"`
	AcceptedAt time.Time `json:"acceptedAt"`
	EndedAt    time.Time `json:"endedAt,omitzero"`
	// OrderedBy is the user on whose behalf the operation was accepted.
	OrderedBy string `json:"orderedBy,omitempty"`
	// Place is nil before the first step and after success.
	Place *Place `json:"place,omitempty"`
	// Wait is nil while a step runs and after the end.
	Wait *Wait `json:"wait,omitempty"`
	// Problem is the error that failed or delays the operation.
	Problem operatorapi.Problem `json:"problem,omitzero"`
	// System is the upstream system whose failure delays the operation, as the answering replica sees it.
	System operatorapi.System `json:"system,omitzero"`
	// SkippedSteps gave up without failing the operation, or were skipped by an operator.
	SkippedSteps []string `json:"skippedSteps,omitempty"`
	// Advice has one sentence each.
	Advice   []string                    `json:"advice,omitempty"`
	Timeline []operatorapi.TimelineEntry `json:"timeline,omitempty"`
	// TimelineRemovedAt is the time at which retention removed the timeline.
	TimelineRemovedAt time.Time `json:"timelineRemovedAt,omitzero"`
}

// Place is the stage, step and attempt at which an operation is.
type Place struct {
	Stage string `json:"stage"`
	// StageNumber counts from 1. It is 0 if the current process no longer has the stage.
	StageNumber int    `json:"stageNumber,omitempty"`
	StageCount  int    `json:"stageCount,omitempty"`
	Step        string `json:"step"`
	Attempt     int    `json:"attempt,omitempty"`
	// Since is the start of the first attempt since the step last succeeded.
	Since time.Time `json:"since,omitzero"`
	// Replica runs the operation. It is empty between attempts.
	Replica string `json:"replica,omitempty"`
}

// Wait describes a wait of the operation.
type Wait struct {
	Why string `json:"why,omitempty"`
	// Until is the time at which the operation continues at the latest.
	Until time.Time `json:"until,omitzero"`
	// Event is the key of the event that continues the operation earlier.
	Event string `json:"event,omitempty"`
}

// Of explains the operation.
func Of(operation operatorapi.Operation, now time.Time) Explanation {
	return Explanation{
		At:           now,
		OperationID:  operation.ID,
		InstanceID:   operation.InstanceID,
		Kind:         operation.Kind,
		State:        string(operation.State),
		Summary:      fmt.Sprintf("The %s of instance %s %s.", operation.Kind, operation.InstanceID, predicate(operation, now)),
		AcceptedAt:   operation.CreatedAt,
		OrderedBy:    operation.OrderedBy,
		EndedAt:      operation.FinishedAt,
		Place:        place(operation),
		Wait:         wait(operation),
		Problem:      operation.Problem,
		System:       operation.System,
		SkippedSteps: operation.SkippedSteps,
		Advice:       advice(operation, now),
		Timeline:     operation.Timeline,

		TimelineRemovedAt: operation.TimelineRemovedAt,
	}
}

// Elapsed returns the duration of the operation, up to now unless it has ended.
func (e Explanation) Elapsed() time.Duration {
	switch {
	case e.AcceptedAt.IsZero():
		return 0
	case !e.EndedAt.IsZero():
		return e.EndedAt.Sub(e.AcceptedAt)
	}

	return max(e.At.Sub(e.AcceptedAt), 0)
}

// Ended reports whether the operation succeeded, failed or was canceled.
func (e Explanation) Ended() bool { return process.State(e.State).Terminal() }

// predicate completes "The operation …".
func predicate(operation operatorapi.Operation, now time.Time) string {
	var took string
	if !operation.FinishedAt.IsZero() {
		took = " after " + output.Duration(operation.FinishedAt.Sub(operation.CreatedAt))
	}

	switch process.State(operation.State) {
	case process.Pending:
		return "is queued"
	case process.Canceling:
		return "is being canceled and ends before its next step"
	case process.Succeeded:
		return "succeeded" + took
	case process.Failed:
		return "failed" + took
	case process.Canceled:
		return "was canceled" + took
	case process.InProgress:
	}

	switch {
	case operation.Replica != "":
		return "is running"
	case operation.Problem.Message != "":
		return "is delayed by an error and will be retried"
	case due(operation, now):
		return "is due and waits for a free worker"
	default:
		return "is waiting"
	}
}

// due reports whether the operation could run but no replica runs it.
func due(operation operatorapi.Operation, now time.Time) bool {
	return operation.Replica == "" && !operation.NextRun.IsZero() && !operation.NextRun.After(now)
}

func place(operation operatorapi.Operation) *Place {
	if operation.Stage == "" || operation.State == operatorapi.OperationStateSucceeded {
		return nil
	}

	return &Place{
		Stage:       operation.Stage,
		StageNumber: slices.Index(operation.Stages, operation.Stage) + 1,
		StageCount:  len(operation.Stages),
		Step:        operation.Step,
		Attempt:     operation.Attempt,
		Since:       since(operation),
		Replica:     operation.Replica,
	}
}

// since returns the start of the step's first attempt. Earlier steps of its stage may have run between attempts.
func since(operation operatorapi.Operation) time.Time {
	first := operation.StepBegan

	for _, entry := range slices.Backward(operation.Timeline) {
		if entry.Step != operation.Step {
			continue
		}

		if outcome := process.Outcome(entry.Outcome); outcome == process.Done || outcome == process.NotCompleted {
			break
		}

		first = entry.Began

		if entry.Attempt == 1 || entry.FirstAttempt == 1 {
			break
		}
	}

	return first
}

func wait(operation operatorapi.Operation) *Wait {
	if process.State(operation.State).Terminal() || operation.Replica != "" {
		return nil
	}

	why := operation.Why
	if why == "" && operation.State == operatorapi.OperationStatePending {
		why = "queued behind earlier operations of the instance"
	}

	return &Wait{Why: why, Until: operation.NextRun, Event: operation.WaitingFor}
}
