package process

import (
	"encoding/json"
	"slices"
	"time"
)

// State is the state of an operation, as stored and as shown by the APIs.
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

// Problem describes why an operation failed, or the error that delays it. The zero value means no problem. Users see all fields.
type Problem struct {
	Message string `json:"message"`
	// Reason is one of the failure.Reason constants, or a code of an upstream.
	Reason string `json:"reason"`
	// Component is the system that caused the problem, one of the failure.Component constants.
	Component string `json:"component"`
}

// Record is a stored operation, without the attempts and the timeline. Zero times mean "not yet".
type Record struct {
	ID string
	// Kind names the process that runs the operation.
	Kind string
	// InstanceID is the object of the operation: a service instance in the broker, a runtime in the Provisioner. Operations of an
	// instance run one after the other, in the order of Position, which is counted from 1.
	InstanceID string
	Position   int64
	// Tenant owns the instance. Pending operations of a kind take turns by tenant.
	Tenant string
	// PredecessorID is the operation that this one retries, or empty.
	PredecessorID string
	// OrderedBy names the requester. Audit holds more about the request, as JSON. The engine stores both and ignores them.
	OrderedBy string
	Audit     string
	// Trace is the trace context of the request, in the format of the Tracer. The engine ignores it.
	Trace string
	State State
	// Description is a one-line status for users, set by the steps.
	Description string
	// Problem is the failure of the last attempt, or of the operation. Progress is the message of an attempt that waits. At most
	// one of them is set.
	Problem  Problem
	Progress string
	// FinishedStages are the names of the stages that never run again. SkippedSteps are the names of the steps that were skipped
	// or not completed without failing the operation.
	FinishedStages []string
	SkippedSteps   []string
	// Skip is an operator's pending request to skip a step.
	Skip Skip
	// Stage and Step are the ones that run now or next. StepBegan is the start of the running attempt, or zero.
	Stage, Step string
	StepBegan   time.Time
	// WaitingFor is the key of an event in an upstream that makes the operation due before NextRun, or empty. Store.Wake of
	// package storage/operations takes such keys.
	WaitingFor string
	// Payload is the data of the process, as JSON. It is sealed at rest and present only in claimed operations.
	Payload json.RawMessage

	CreatedAt, UpdatedAt time.Time
	// StartedAt is the time of the first claim, from which Process.Limit counts. FinishedAt is the end of the operation.
	StartedAt, FinishedAt time.Time
	// NextRun is when the operation is due, unless an event wakes it earlier.
	NextRun time.Time
	Lease   Lease
	// TimelineRemoved is when retention removed the timeline, or zero.
	TimelineRemoved time.Time
}

// Skip is an operator's request to skip a step. The zero value means no request.
type Skip struct {
	Step, Reason string
}

// Lease is one replica's right to run the operation. Every write names the owner and the fence, and fails once a later claim has
// raised the fence.
type Lease struct {
	// Owner is the ID of the engine that holds the lease, or empty.
	Owner string
	// Until is the expiry; renewals extend it.
	Until time.Time
	// Fence counts the claims of the operation. It never decreases.
	Fence int64
}

// Finished reports whether the stage has finished and never runs again.
func (r Record) Finished(stage string) bool { return slices.Contains(r.FinishedStages, stage) }

// Attempt counts the attempts of a step since it last succeeded in its operation. Attempts are stored while the step waits or
// fails, so retry windows and limits survive crashes.
type Attempt struct {
	Stage, Step string
	// Number is counted from 1.
	Number int
	// First and Last are when the first and the latest attempt started.
	First, Last time.Time
	// Failures counts the consecutive failures: a success or a wait resets it. FailingSince is the first of them.
	Failures     int
	FailingSince time.Time
	LastError    string
}

// failing returns the attempt counted as one more failure. The retry window starts when the first failed attempt started.
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

// The outcomes of attempts. They are stored, and part of the operator API.
const (
	Done     Outcome = "done"
	Waiting  Outcome = "waiting"
	Retrying Outcome = "retrying"
	// NotCompleted is the end of a step that gave up without failing the operation.
	NotCompleted Outcome = "not completed"
	StepFailed   Outcome = "failed"
	// HandedBack is an attempt that was interrupted, because the replica stopped or the operation exceeded its limit. It does not
	// count.
	HandedBack Outcome = "handed back"
	// Skipped is a step that an operator left out.
	Skipped Outcome = "skipped"
)

// The events of the operation as a whole. Their entries have no stage and no step.
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

// Entry is one entry of an operation's timeline: an attempt of a step, or an event of the operation.
type Entry struct {
	Stage, Step string
	// Attempt is counted from 1; events have 0. A compacted entry covers consecutive attempts with the same outcome and message,
	// from FirstAttempt to Attempt: Began belongs to the first attempt, End and NextRun to the last. Other entries have
	// FirstAttempt 0.
	Attempt, FirstAttempt int
	Began, End            time.Time
	Outcome               Outcome
	Message               string
	// NextRun is when the step runs again, or zero.
	NextRun time.Time
}

// New is an operation to accept. Fields with the names of fields of the Record have the same meaning and become the first values
// of the Record.
type New struct {
	ID, Kind, InstanceID string
	Tenant               string
	PredecessorID        string
	Description          string
	// OrderedBy, Audit and Trace never change after acceptance.
	OrderedBy string
	Audit     string
	Trace     string
	// Why is the message of the first timeline entry. It defaults to the kind.
	Why string
	// FinishedStages and SkippedSteps do not run. A retry takes them over from its predecessor.
	FinishedStages []string
	SkippedSteps   []string
	// Payload is the data of the process, as JSON.
	Payload json.RawMessage
	// At is the time of the acceptance. The operation is due at once.
	At time.Time
}
