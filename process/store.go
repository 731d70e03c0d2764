package process

import (
	"context"
	"errors"
	"time"
)

// ErrLeaseLost reports that another replica has claimed the operation since. Nothing was written.
var ErrLeaseLost = errors.New("lease lost to another replica")

// Store keeps the operations. The caller passes all times, so a single clock decides.
type Store interface {
	// Due reports which of the kinds have work. A later Claim may still return nothing, because other replicas claim too.
	Due(ctx context.Context, kinds []string, now time.Time) ([]Due, error)
	// Claim takes operations of a kind under the owner's lease. Pending operations become in progress in the order of the tenants'
	// turns, except where an older operation of the instance is unfinished. Other operations are claimed when they are due again.
	Claim(ctx context.Context, claim Claim) ([]Claimed, error)
	// Renew extends the owner's leases and returns the states of the operations that it still holds, by operation id.
	Renew(ctx context.Context, renewal Renewal) (map[string]State, error)
	// Save writes the progress of a run in one transaction and returns the resulting state: Canceling when a cancellation was
	// requested meanwhile. It returns ErrLeaseLost when the fence has been raised.
	Save(ctx context.Context, progress Progress) (State, error)
	// UnfinishedKinds lists the kinds of operations that have not ended.
	UnfinishedKinds(ctx context.Context) ([]string, error)
	// ExpirePending fails operations that have been pending too long and returns them. Fewer than the limit means that none are left.
	ExpirePending(ctx context.Context, expiry Expiry) ([]Record, error)
}

// Due is work of a kind.
type Due struct {
	Kind string
	// Pending selects operations that have not started; otherwise those that are due again.
	Pending bool
}

// Claim is a request for work.
type Claim struct {
	Due

	Owner string
	Limit int
	// CreatedAfter excludes operations that were accepted earlier.
	CreatedAfter time.Time
	Now          time.Time
	// Until is the expiry of the lease.
	Until time.Time
}

// Claimed is an operation with the attempts of its unfinished steps.
type Claimed struct {
	Record   Record
	Attempts []Attempt
	// TakenFrom is the replica whose lease expired, or empty.
	TakenFrom string
	// Unreadable is the error of reading the payload, or nil. Such an operation fails and keeps its payload.
	Unreadable error
}

// Renewal extends the leases of operations and records what each of them is running.
type Renewal struct {
	Owner string
	Until time.Time
	Held  []Held
}

// Held is an operation under lease and the step that it runs.
type Held struct {
	OperationID string
	Fence       int64
	Stage, Step string
	StepBegan   time.Time
	// Changed reports that the store does not know of this step yet.
	Changed bool
}

// Progress is the result of a run since its last save. Record has the new values and the lease under which it was claimed.
type Progress struct {
	Record Record
	// Failed are attempts to store. Cleared are those of steps that succeeded.
	Failed, Cleared []Attempt
	Timeline        []Entry
	// KeepPayload leaves the stored payload unchanged.
	KeepPayload bool
	// LeftOut is the step that was skipped on request, or empty. A later request for another step is kept.
	LeftOut string
	// Release returns the lease: the operation is due at Record.NextRun, or at once if it was woken meanwhile.
	Release bool
	Now     time.Time
}

// Expiry fails at most Limit operations that have been pending since before Before, with the Problem.
type Expiry struct {
	Before, Now time.Time
	Limit       int
	Problem     Problem
}
