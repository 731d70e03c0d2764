package explain

import (
	"fmt"
	"slices"
	"time"

	"github.com/environment-broker/environment-broker/internal/operatorapi"
	"github.com/environment-broker/environment-broker/internal/operatorapi/timetext"
	"github.com/environment-broker/environment-broker/process"
)

// Explanation describes an operation at one point in time. Its JSON form is stable, so scripts can rely on it. The explaintext
// package of ebctl prints it for users.
type Explanation struct {
	// At is the time of the explanation. The text shows ages and remaining times relative to At.
	At          time.Time `json:"at"`
	OperationID string    `json:"operationID"`
	InstanceID  string    `json:"instanceID"`
	Kind        string    `json:"kind"`
	State       string    `json:"state"`
	// Summary states the kind, the instance and the state of the operation in one sentence.
	Summary    string    `json:"summary"`
	AcceptedAt time.Time `json:"acceptedAt"`
	EndedAt    time.Time `json:"endedAt,omitzero"`
	// OrderedBy is the user who requested the operation: the user that the platform names, if any, and otherwise the API client.
	OrderedBy string `json:"orderedBy,omitempty"`
	// TraceID is the ID of the operation's OpenTelemetry trace, or empty if the operation is not traced.
	TraceID string `json:"traceID,omitempty"`
	// Place is the current step, or the last step of an operation that failed or was canceled. It is nil before the first step and
	// after success.
	Place *Place `json:"place,omitempty"`
	// Wait is nil while a step runs and after the operation has ended.
	Wait *Wait `json:"wait,omitempty"`
	// Problem is the error that failed the operation or delays it, or the zero value if there is no error.
	Problem operatorapi.Problem `json:"problem,omitzero"`
	// System is the upstream system whose failure delays the operation. Each replica has its own circuit breakers, so different
	// replicas can report different states.
	System operatorapi.System `json:"system,omitzero"`
	// SkippedSteps lists steps without a result: an operator skipped them, or they are optional and failed.
	SkippedSteps []string `json:"skippedSteps,omitempty"`
	// Advice lists recommended actions, one sentence per element, in the order in which to consider them.
	Advice   []string                    `json:"advice,omitempty"`
	Timeline []operatorapi.TimelineEntry `json:"timeline,omitempty"`
	// Percent is the part of the work that is done, or 0 if it is unknown.
	Percent int `json:"percent,omitempty"`
	// EstimatedEnd and LatestEnd are the times before which half and 95 % of past operations would have ended. They are zero if there
	// is no forecast, or if the operation takes longer than past ones.
	EstimatedEnd time.Time `json:"estimatedEnd,omitzero"`
	LatestEnd    time.Time `json:"latestEnd,omitzero"`
	// UserText is the text that the platform shows to its users about the operation. It is empty if the service provides none.
	// The Provisioner never does.
	UserText string `json:"userText,omitempty"`
	// TimelineRemovedAt is when the broker removed the timeline because its retention time had passed. It is zero while the timeline
	// exists.
	TimelineRemovedAt time.Time `json:"timelineRemovedAt,omitzero"`
}

// Place is the position of an operation in its process.
type Place struct {
	Stage string `json:"stage"`
	// StageNumber is the position of the stage in the process, starting at 1. It is 0 if the stage exists only in an earlier version
	// of the process.
	StageNumber int    `json:"stageNumber,omitempty"`
	StageCount  int    `json:"stageCount,omitempty"`
	Step        string `json:"step"`
	// Does says in a sentence what the step does. It is empty if the process no longer has the step.
	Does string `json:"does,omitempty"`
	// Attempt is the number of the step's current attempt, starting at 1. It is 0 before the first attempt.
	Attempt int `json:"attempt,omitempty"`
	// Since is the start of the step's first attempt. It stays the same while the step is retried.
	Since time.Time `json:"since,omitzero"`
	// Replica is the name of the replica that is running the step, or empty between attempts.
	Replica string `json:"replica,omitempty"`
}

// Wait explains why an operation waits and when it resumes.
type Wait struct {
	// Why is the reason that the step returned, or the error after which the step will be retried.
	Why string `json:"why,omitempty"`
	// Until is when the operation resumes at the latest. If Event is not empty, the event can end the wait earlier.
	Until time.Time `json:"until,omitzero"`
	// GivesUpAt is the time after which the next attempt gives up, or zero if it is unknown. The operation then fails, or continues
	// without the step if Optional is set.
	GivesUpAt time.Time `json:"givesUpAt,omitzero"`
	Optional  bool      `json:"optional,omitempty"`
	// Event is the key of the event that can end the wait early, such as the ID of a runtime. It is empty if no event can.
	Event string `json:"event,omitempty"`
}

// Of explains a response of the operator API at the time now. Clock skew between broker and client makes ages and remaining times
// inaccurate, but they are never printed as negative.
func Of(operation operatorapi.Operation, now time.Time) Explanation {
	return Explanation{
		At:           now,
		OperationID:  operation.ID,
		InstanceID:   operation.InstanceID,
		Kind:         operation.Kind,
		State:        string(operation.State),
		Summary:      fmt.Sprintf("The %s %s.", subject(operation), predicate(operation, now)),
		AcceptedAt:   operation.CreatedAt,
		OrderedBy:    operation.OrderedBy,
		TraceID:      operation.TraceID,
		EndedAt:      operation.FinishedAt,
		Place:        place(operation),
		Wait:         wait(operation),
		Problem:      operation.Problem,
		System:       operation.System,
		SkippedSteps: operation.SkippedSteps,
		Advice:       advice(situation{Operation: operation, now: now}),
		Timeline:     operation.Timeline,
		Percent:      operation.Percent,
		EstimatedEnd: operation.EstimatedEnd,
		LatestEnd:    operation.LatestEnd,
		UserText:     operation.UserText,

		TimelineRemovedAt: operation.TimelineRemovedAt,
	}
}

// subject returns the operation and its instance as a noun phrase. Operations that conduct orchestrations have no instance.
func subject(operation operatorapi.Operation) string {
	if operation.InstanceID == "" {
		return operation.Kind + " operation"
	}

	return fmt.Sprintf("%s operation of instance %s", operation.Kind, operation.InstanceID)
}

// Elapsed returns the time from the acceptance of the operation to its end, or to At if the operation has not ended. It returns 0
// if AcceptedAt is zero, because the operation has not been read yet.
func (e Explanation) Elapsed() time.Duration {
	switch {
	case e.AcceptedAt.IsZero():
		return 0
	case !e.EndedAt.IsZero():
		return e.EndedAt.Sub(e.AcceptedAt)
	}

	return max(e.At.Sub(e.AcceptedAt), 0)
}

// Progress returns the percentage and the remaining time, as far as they are known.
func (e Explanation) Progress() string {
	return timetext.Progress(e.Percent, e.EstimatedEnd.Sub(e.At), e.LatestEnd.Sub(e.At))
}

// Left returns the remaining time, or an empty string if it is unknown.
func (e Explanation) Left() string {
	return timetext.Left(e.EstimatedEnd.Sub(e.At), e.LatestEnd.Sub(e.At))
}

// Ended reports whether the operation succeeded, failed or was canceled.
func (e Explanation) Ended() bool { return process.State(e.State).Terminal() }

// predicate completes the sentence "The operation …" with the state of the operation. For an operation in progress that is not
// running, it adds the reason: an error, a lack of free workers, or a planned wait.
func predicate(operation operatorapi.Operation, now time.Time) string {
	var took string
	if !operation.FinishedAt.IsZero() {
		took = " after " + timetext.Duration(operation.FinishedAt.Sub(operation.CreatedAt))
	}

	switch process.State(operation.State) {
	case process.Pending:
		return "is queued"
	case process.Canceling:
		return "is being canceled and will end before its next step"
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
		return "is due and waiting for a free worker"
	default:
		return "is waiting"
	}
}

// due reports whether the operation is ready to run but no worker has claimed it.
func due(operation operatorapi.Operation, now time.Time) bool {
	return operation.Replica == "" && !operation.NextRun.IsZero() && !operation.NextRun.After(now)
}

// place returns the position of the operation in its process, or nil before the first stage and after success.
func place(operation operatorapi.Operation) *Place {
	if operation.Stage == "" || operation.State == operatorapi.OperationStateSucceeded {
		return nil
	}

	return &Place{
		Stage:       operation.Stage,
		StageNumber: slices.Index(operation.Stages, operation.Stage) + 1,
		StageCount:  len(operation.Stages),
		Step:        operation.Step,
		Does:        operation.StepDoes,
		Attempt:     operation.Attempt,
		Since:       since(operation),
		Replica:     operation.Replica,
	}
}

// since returns the start of the current step's first attempt, not counting attempts before the step last succeeded. It searches
// the timeline backwards. Entries of other steps can be in between, because a retry repeats the whole stage.
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

// wait returns why the operation waits, or nil if it is running or has ended. The broker stores no reason for pending operations,
// so wait adds one: they are queued behind other operations.
func wait(operation operatorapi.Operation) *Wait {
	if process.State(operation.State).Terminal() || operation.Replica != "" {
		return nil
	}

	why := operation.Why
	if why == "" && operation.State == operatorapi.OperationStatePending {
		why = "queued behind earlier operations of the instance"
	}

	return &Wait{
		Why: why, Until: operation.NextRun, GivesUpAt: operation.GivesUpAt, Optional: operation.StepOptional, Event: operation.WaitingFor,
	}
}
