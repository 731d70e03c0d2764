package process

import (
	"encoding/json"
	"slices"
	"time"
)

// State is where an operation stands.
type State string

// The states. Pending operations wait for their turn; at most one operation of an instance is in progress or canceling.
const (
	Pending    State = "pending"
	InProgress State = "in progress"
	Canceling  State = "canceling"
	Succeeded  State = "succeeded"
	Failed     State = "failed"
	Canceled   State = "canceled"
)

// Terminal reports whether nothing will happen any more.
func (s State) Terminal() bool { return s == Succeeded || s == Failed || s == Canceled }

// Problem is why an operation failed, or what holds it up.
type Problem struct {
	Message   string `json:"message"`
	Reason    string `json:"reason"`
	Component string `json:"component"`
}

// Record is an operation as it is stored.
type Record struct {
	ID string
	// Kind names the process that carries the operation.
	Kind string
	// InstanceID is what the operation works on. Operations of one instance run one after the other, by Position.
	InstanceID string
	Position   int64
	// Tenant is on whose behalf it works. Those of a kind take turns by tenant.
	Tenant string
	// PredecessorID is the operation that this one retries, or empty.
	PredecessorID string
	// OrderedBy is on whose behalf it was accepted, Audit what else is told of that, as JSON. The engine does not look at them.
	OrderedBy string
	Audit     string
	// Trace is where a Tracer has it belong, as a line. The engine does not look at it.
	Trace string
	State State
	// Description is a line for people.
	Description string
	// Problem is what its last run failed at, Progress what that run said instead when it waits.
	Problem  Problem
	Progress string
	// FinishedStages are never run again. SkippedSteps were not completed, without failing the operation.
	FinishedStages []string
	SkippedSteps   []string
	// Skip is a step that an operator lets be left out, with the reason.
	Skip Skip
	// Stage and Step tell what runs, or what runs next; StepBegan when the attempt began that runs now.
	Stage, Step string
	StepBegan   time.Time
	// WaitingFor is a key of the outside event that makes the operation due before NextRun.
	WaitingFor string
	// Payload is the data that the steps share, as JSON. It is sealed at rest; only who carries the operation gets it.
	Payload json.RawMessage

	CreatedAt, UpdatedAt time.Time
	// StartedAt is the first claim; limits count from it. FinishedAt is the end.
	StartedAt, FinishedAt time.Time
	NextRun               time.Time
	Lease                 Lease
	// TimelineRemoved is when the timeline of an operation was removed that had ended long ago, or zero.
	TimelineRemoved time.Time
}

// Skip names a step that is to be left out.
type Skip struct {
	Step, Reason string
}

// Lease is one replica's right to carry the operation. Every write carries the fence and fails once another claim raised it.
type Lease struct {
	Owner string
	Until time.Time
	Fence int64
}

// Finished reports whether the stage is never to be run again.
func (r Record) Finished(stage string) bool { return slices.Contains(r.FinishedStages, stage) }

// Attempt counts the runs of a step since it last succeeded in its operation.
type Attempt struct {
	Stage, Step string
	Number      int
	First, Last time.Time
	// Failures counts the runs that failed without one that succeeded or waited in between, FailingSince is the first of them.
	Failures     int
	FailingSince time.Time
	LastError    string
}

// Outcome is what came of an attempt, or what happened to the operation.
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

// The outcomes that concern the operation as a whole; their entries name no step.
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

// Entry is a line of an operation's timeline.
type Entry struct {
	Stage, Step string
	// Attempt is counted from 1. A stored line may stand for several attempts in a row that came back with the same outcome and
	// message: from FirstAttempt, which is 0 otherwise, to Attempt. Began is then of the first, End and NextRun are of the last.
	Attempt, FirstAttempt int
	Began, End            time.Time
	Outcome               Outcome
	Message               string
	// NextRun is when the step is tried again, where it is.
	NextRun time.Time
}

// New is an operation to be accepted.
type New struct {
	ID, Kind, InstanceID string
	// Tenant is on whose behalf it works: one with many pending operations does not delay the others.
	Tenant        string
	PredecessorID string
	Description   string
	// OrderedBy and Audit are those of the Record. They never change.
	OrderedBy string
	Audit     string
	// Trace is that of the Record.
	Trace string
	// Why is told in the first line of its timeline; without it, its kind is.
	Why string
	// FinishedStages and SkippedSteps are those that it does not run: of a retry, what it takes over.
	FinishedStages []string
	SkippedSteps   []string
	Payload        json.RawMessage
	At             time.Time
}
