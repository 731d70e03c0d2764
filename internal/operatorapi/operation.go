package operatorapi

import "time"

// Operation is a piece of work on an instance.
type Operation struct {
	ID         string `json:"operationID"`
	InstanceID string `json:"instanceID"`
	// BindingID is the binding of the instance that it works on, where it does not work on the instance itself.
	BindingID string `json:"bindingID,omitempty"`
	// Kind is provision, deprovision and so on.
	Kind string `json:"kind"`
	// State is pending, in progress, canceling, succeeded, failed or canceled.
	State string `json:"state"`
	// Description is a line for people.
	Description string `json:"description,omitempty"`
	// Problem is why it failed, or what holds it up.
	Problem *Problem `json:"problem,omitempty"`
	// PredecessorID is the failed or canceled operation that this one retries.
	PredecessorID string `json:"predecessorID,omitempty"`
	// OrderedBy is on whose behalf it was accepted: the platform's user where the platform names one, else the user who sent the request.
	OrderedBy string `json:"orderedBy,omitempty"`

	// Stages are all stages of the process in order, FinishedStages those that are done for good. SkippedSteps gave up
	// without failing the operation, or an operator had them left out, of this operation or of one that it retries.
	Stages         []string `json:"stages,omitempty"`
	FinishedStages []string `json:"finishedStages,omitempty"`
	SkippedSteps   []string `json:"skippedSteps,omitempty"`
	// Stage and Step tell what runs since StepBegan, or what runs next.
	Stage     string     `json:"stage,omitempty"`
	Step      string     `json:"step,omitempty"`
	StepBegan *time.Time `json:"stepBegan,omitempty"`
	// Skippable says that an operator may have the step left out, by a skip or, where the operation failed or was canceled at it,
	// by a retry: nothing after it needs what it does.
	Skippable bool `json:"skippable,omitempty"`
	// Attempt counts the runs of the step since it last succeeded. Only the operation by its id tells it.
	Attempt int `json:"attempt,omitempty"`
	// Why tells what the operation waits for, in the words of the step that waits. Only the operation by its id tells it.
	Why string `json:"why,omitempty"`
	// System is the outside system whose failure holds it up, as the replica that answers sees it. Only the operation by its id
	// tells it.
	System *System `json:"system,omitempty"`
	// WaitingFor is the key of the event that wakes the operation before NextRun.
	WaitingFor string     `json:"waitingFor,omitempty"`
	NextRun    *time.Time `json:"nextRun,omitempty"`
	// Replica carries the operation at this moment.
	Replica string `json:"replica,omitempty"`

	CreatedAt  time.Time  `json:"createdAt"`
	UpdatedAt  time.Time  `json:"updatedAt"`
	StartedAt  *time.Time `json:"startedAt,omitempty"`
	FinishedAt *time.Time `json:"finishedAt,omitempty"`

	// Timeline is what happened so far, the oldest first. Only the operation by its id has it.
	Timeline []TimelineEntry `json:"timeline,omitempty"`
	// TimelineRemovedAt is when the timeline was removed, because the operation had ended long ago.
	TimelineRemovedAt *time.Time `json:"timelineRemovedAt,omitempty"`
}

// Problem is an error as it is shown: a line for people, a reason for machines, the system that it came from.
type Problem struct {
	Message   string `json:"message"`
	Reason    string `json:"reason,omitempty"`
	Component string `json:"component,omitempty"`
}

// TimelineEntry is an attempt of a step or, without a step, something that happened to the operation as a whole.
type TimelineEntry struct {
	Stage string `json:"stage,omitempty"`
	Step  string `json:"step,omitempty"`
	// Attempt counts from 1. An entry may stand for several attempts in a row that came to the same: from FirstAttempt, which is
	// absent otherwise, to Attempt. Began is then of the first, End and NextRun are of the last.
	Attempt      int       `json:"attempt,omitempty"`
	FirstAttempt int       `json:"firstAttempt,omitempty"`
	Began        time.Time `json:"began"`
	End          time.Time `json:"end"`
	// Outcome of an attempt is done, waiting, retrying, not completed, skipped, failed or handed back; of the operation accepted,
	// taken over, cancel requested, skip requested, operation succeeded, operation failed, operation canceled or retried.
	Outcome string `json:"outcome"`
	Message string `json:"message,omitempty"`
	// NextRun is when the step is tried again, where it is.
	NextRun *time.Time `json:"nextRun,omitempty"`
}

// Intervention is what an operator asks for about an operation: to cancel it, to retry it, or to leave its step out.
type Intervention struct {
	// Reason is kept in the timeline, together with the operator's name. It is one line of at most 500 characters.
	Reason string `json:"reason"`
	// Step is, for a skip, the step to be left out: by default that with which the operation is busy. For a retry it is the step
	// at which the former operation ended, if that is to be left out.
	Step string `json:"step,omitempty"`
}

// OperationList is a page of operations, the newest first.
type OperationList struct {
	Page

	Data []Operation `json:"data"`
}

// Error is the body of every answer that is no success.
type Error struct {
	// Code is a single word for machines, such as NotFound.
	Code        string `json:"error"`
	Description string `json:"description"`
}
