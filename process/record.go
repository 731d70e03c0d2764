package process

import (
	"encoding/json"
	"slices"
	"time"
)

// State is the state of an operation.
type State string

// Operations start as Pending. At most one operation of an instance is InProgress or Canceling. The other states are final.
const (
	Pending    State = "pending"
	InProgress State = "in progress"
	Canceling  State = "canceling"
	Succeeded  State = "succeeded"
	Failed     State = "failed"
	Canceled   State = "canceled"
)

// Terminal reports whether the state is final.
func (s State) Terminal() bool { return s == Succeeded || s == Failed || s == Canceled }

// Problem says why an operation failed, or what delays it.
type Problem struct {
	Message   string `json:"message"`
	Reason    string `json:"reason"`
	Component string `json:"component"`
}

// Record is a stored operation.
type Record struct {
	ID string
	// Kind names the process that runs the operation.
	Kind string
	// InstanceID is the object of the operation. Operations of an instance run one after the other, by Position.
	InstanceID string
	Position   int64
	// Tenant is the owner of the instance. Pending operations of a kind take turns by tenant.
	Tenant string
	// PredecessorID is the operation that this one retries, or empty.
	PredecessorID string
	// OrderedBy names the requester. Audit holds more about the request, as JSON. The engine ignores both.
	OrderedBy string
	Audit     string
	// Trace is the trace context of the request, in the format of the Tracer. The engine ignores it.
	Trace string
	State State
	// Description is one line for users.
	Description string
	// Problem is the failure of the last attempt. Progress is the message of an attempt that waits instead.
	Problem  Problem
	Progress string
	// FinishedStages never run again. SkippedSteps were not completed, without failing the operation.
	FinishedStages []string
	SkippedSteps   []string
	// Skip is an operator's pending request to skip a step.
	Skip Skip
	// Stage and Step run now, or next. StepBegan is the start of the running attempt, or zero.
	Stage, Step string
	StepBegan   time.Time
	// WaitingFor is the key of an outside event that makes the operation due before NextRun.
	WaitingFor string
	// Payload is the data of the process, as JSON. It is sealed at rest and present only in claimed operations.
	Payload json.RawMessage

	CreatedAt, UpdatedAt time.Time
	// StartedAt is the first claim, from which Process.Limit counts. FinishedAt is the end.
	StartedAt, FinishedAt time.Time
	NextRun               time.Time
	Lease                 Lease
	// TimelineRemoved is when retention removed the timeline, or zero.
	TimelineRemoved time.Time
}

// Skip is an operator's request to skip a step.
type Skip struct {
	Step, Reason string
}

// Lease is one replica's right to run the operation. Every write carries the fence and fails once a later claim has raised it.
type Lease struct {
	Owner string
	Until time.Time
	Fence int64
}

// Finished reports whether the stage has finished and never runs again.
func (r Record) Finished(stage string) bool { return slices.Contains(r.FinishedStages, stage) }

// Attempt counts the attempts of a step since it last succeeded in its operation.
type Attempt struct {
	Stage, Step string
	Number      int
	First, Last time.Time
	// Failures counts the consecutive failures: a success or a wait resets it. FailingSince is the first of them.
	Failures     int
	FailingSince time.Time
	LastError    string
}

// failing returns the attempt counted as one more failure.
func (a Attempt) failing() Attempt {
	if a.Failures == 0 {
		a.FailingSince = a.Last
	}

	a.Failures++

	return a
}

// failingFor returns the time since the first of the consecutive failures, counting this attempt as one of them.
func (a Attempt) failingFor() time.Duration { return a.Last.Sub(a.failing().FailingSince) }

// Outcome is the result of an attempt, or an event of the operation.
type Outcome string

// The outcomes of attempts.
const (
	Done         Outcome = "done"
	Waiting      Outcome = "waiting"
	Retrying     Outcome = "retrying"
	NotCompleted Outcome = "not completed"
	StepFailed   Outcome = "failed"
	HandedBack   Outcome = "handed back"
	Skipped      Outcome = "skipped"
)

// The events of the operation as a whole; their entries name no step.
const (
	Accepted           Outcome = "accepted"
	TakenOver          Outcome = "taken over"
	CancelRequested    Outcome = "cancel requested"
	SkipRequested      Outcome = "skip requested"
	Retried            Outcome = "retried"
	OperationCanceled  Outcome = "operation canceled"
	OperationSucceeded Outcome = "operation succeeded"
	OperationFailed    Outcome = "operation failed"
)

// Entry is one entry of an operation's timeline.
type Entry struct {
	Stage, Step string
	// Attempt is counted from 1. A compacted entry covers consecutive attempts with the same outcome and message, from FirstAttempt
	// (otherwise 0) to Attempt. Began is then that of the first attempt; End and NextRun are those of the last.
	Attempt, FirstAttempt int
	Began, End            time.Time
	Outcome               Outcome
	Message               string
	// NextRun is when the step runs again, or zero.
	NextRun time.Time
}

// New is an operation to accept.
type New struct {
	ID, Kind, InstanceID string
	// Tenant owns the instance. A tenant with many pending operations does not delay the others.
	Tenant        string
	PredecessorID string
	Description   string
	// OrderedBy and Audit are those of the Record. They never change.
	OrderedBy string
	Audit     string
	// Trace is that of the Record.
	Trace string
	// Why is the message of the first timeline entry. It defaults to the kind.
	Why string
	// FinishedStages and SkippedSteps do not run: a retry takes them over from its predecessor.
	FinishedStages []string
	SkippedSteps   []string
	Payload        json.RawMessage
	At             time.Time
}
