package process

import (
	"encoding/json"
	"slices"
	"time"

	"github.com/environment-broker/environment-broker/internal/failure"
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

// Problem describes why an operation failed, or which error delays it. The zero value means no problem.
type Problem struct {
	// Message is for users. It contains no text from other systems.
	Message string `json:"message"`
	// Detail is an upstream's own error message, for operators. It may be empty.
	Detail string `json:"detail,omitempty"`
	// Reason is one of the failure.Reason constants, or an error code from an upstream.
	Reason string `json:"reason"`
	// Component is the system that caused the problem, one of the failure.Component constants.
	Component string `json:"component"`
}

// ForOperators returns the message followed by the detail, if there is one.
func (p Problem) ForOperators() string { return failure.WithDetail(p.Message, p.Detail) }

// Record is a stored operation, without the attempts and the timeline. A zero time means "not yet".
type Record struct {
	ID string
	// Kind names the process that runs the operation.
	Kind string
	// InstanceID identifies the object that the operation changes: a service instance in the broker, a runtime in the Provisioner.
	// Operations of an instance run one after the other, in the order of Position, which is counted from 1.
	InstanceID string
	Position   int64
	// Tenant owns the instance. Pending operations of a kind take turns by tenant.
	Tenant string
	// PredecessorID is the ID of the operation that this one retries, or empty.
	PredecessorID string
	// OrderedBy names the requester. Audit has more details about the request, as JSON. The engine stores both fields but does not
	// use them.
	OrderedBy string
	Audit     string
	// Trace is the trace context of the request, in the format of the Tracer. The engine does not use it.
	Trace string
	// VisibleTo names who may see the operation, in a format that the service defines. The engine neither uses nor changes it.
	VisibleTo string
	State     State
	// Description is a one-line status for users, set by the steps.
	Description string
	// Problem is the failure of the last attempt. Progress is the message of a waiting attempt, for operators: it may quote other
	// systems. At most one of them is set.
	Problem  Problem
	Progress string
	// FinishedStages lists the stages that never run again. SkippedSteps lists the steps that were skipped, and the steps that
	// gave up without failing the operation.
	FinishedStages []string
	SkippedSteps   []string
	// Skip is an operator's pending request to skip a step.
	Skip Skip
	// Stage and Step are running now, or run next. StepBegan is when the running attempt started, or zero.
	Stage, Step string
	StepBegan   time.Time
	// StepSince is when the first attempt of the step started, or zero. Stores set it only in records for a Forecast.
	StepSince time.Time
	// WaitingFor is the key of an event in an upstream, or empty. The event makes the operation due before NextRun; see
	// Store.Wake of package storage/operations.
	WaitingFor string
	// Payload is the data of the process, as JSON. It is sealed in the database. Only a claim reads it: records from lists have none.
	Payload json.RawMessage

	CreatedAt, UpdatedAt time.Time
	// StartedAt is the time of the first claim. Process.Limit counts from it. FinishedAt is when the operation ended.
	StartedAt, FinishedAt time.Time
	// NextRun is when the operation is due, unless an event wakes the operation earlier.
	NextRun time.Time
	Lease   Lease
	// TimelineRemoved is when the timeline was removed, after its retention period or by an erasure, or zero.
	TimelineRemoved time.Time
}

// Skip is an operator's request to skip a step. The zero value means no request.
type Skip struct {
	Step, Reason string
}

// Lease is one replica's right to run the operation. Every write names the owner and the fence, and fails after a later claim
// has raised the fence.
type Lease struct {
	// Owner is the ID of the engine that holds the lease, or empty.
	Owner string
	// Until is when the lease expires. Renewals extend it.
	Until time.Time
	// Fence counts the claims of the operation. It never decreases.
	Fence int64
}

// NeverStarted reports whether the operation has ended while it was pending, and thus has changed nothing.
func (r Record) NeverStarted() bool { return r.State.Terminal() && r.StartedAt.IsZero() }

// Finished reports whether the stage has finished and never runs again.
func (r Record) Finished(stage string) bool { return slices.Contains(r.FinishedStages, stage) }

// Attempt describes the attempts of a step since the step last succeeded in its operation. Attempts are stored while the step
// waits or fails, so retry windows and limits survive crashes.
type Attempt struct {
	Stage, Step string
	// Number is counted from 1.
	Number int
	// First is when the first attempt started, and Last is when the latest attempt started.
	First, Last time.Time
	// Failures is the number of consecutive failures. A success or a wait resets it. FailingSince is when the first of these
	// failed attempts started.
	Failures     int
	FailingSince time.Time
	LastError    string
}

// failing returns the attempt with one more failure. The retry window starts when the first failed attempt started.
func (a Attempt) failing() Attempt {
	if a.Failures == 0 {
		a.FailingSince = a.Last
	}

	a.Failures++

	return a
}

// failingFor returns the time since the first of the consecutive failures. It counts this attempt as a failure.
func (a Attempt) failingFor() time.Duration { return a.Last.Sub(a.failing().FailingSince) }

// Outcome is the result of an attempt, or an event of the operation.
type Outcome string

// The outcomes of attempts. They are stored, and part of the operator API.
const (
	Done     Outcome = "done"
	Waiting  Outcome = "waiting"
	Retrying Outcome = "retrying"
	// NotCompleted means that a step gave up without failing the operation.
	NotCompleted Outcome = "not completed"
	StepFailed   Outcome = "failed"
	// HandedBack means that an attempt was interrupted, because the replica stopped or the operation exceeded its limit. The
	// attempt does not count.
	HandedBack Outcome = "handed back"
	// Skipped means that a step did not run because an operator requested the skip.
	Skipped Outcome = "skipped"
)

// Events that concern the operation as a whole. Their entries have no stage and no step.
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
	// Attempt is counted from 1, and is 0 for events. A compacted entry covers consecutive attempts with the same outcome and
	// message, from FirstAttempt to Attempt. Its Began is the start of the first attempt; its End and NextRun belong to the
	// last attempt. All other entries have FirstAttempt 0.
	Attempt, FirstAttempt int
	Began, End            time.Time
	Outcome               Outcome
	Message               string
	// NextRun is when the step runs again, or zero.
	NextRun time.Time
}

// New is an operation to accept. Fields that have the same name as a field of Record have the same meaning, and become the
// initial values of the Record.
type New struct {
	ID, Kind, InstanceID string
	Tenant               string
	PredecessorID        string
	Description          string
	// OrderedBy, Audit and Trace never change after acceptance. The service can change VisibleTo.
	OrderedBy string
	Audit     string
	Trace     string
	VisibleTo string
	// Why is the message of the first timeline entry. It defaults to the kind.
	Why string
	// FinishedStages and SkippedSteps do not run. A retry copies them from its predecessor.
	FinishedStages []string
	SkippedSteps   []string
	// Payload is the data of the process, as JSON.
	Payload json.RawMessage
	// At is when the operation is accepted and becomes due.
	At time.Time
}
