package process

import (
	"context"
	"errors"
	"time"
)

// ErrLeaseLost tells that another replica has claimed the operation since. Nothing was written.
var ErrLeaseLost = errors.New("the lease of the operation was lost to another replica")

// Store keeps the operations. All times come from the caller, so that one clock rules.
type Store interface {
	// Due tells of which of the kinds there is work. A claim of it may still bring nothing, as others claim too.
	Due(ctx context.Context, kinds []string, now time.Time) ([]Due, error)
	// Claim takes operations of a kind under the owner's lease: pending ones, whose tenants take turns and which become in
	// progress unless an older operation of their instance is unfinished; or those that are due again.
	Claim(ctx context.Context, claim Claim) ([]Claimed, error)
	// Renew extends the owner's leases and tells the states of those that it still holds, by operation id.
	Renew(ctx context.Context, renewal Renewal) (map[string]State, error)
	// Save writes what came of a run in one transaction. It returns the state that the operation then has: a save that
	// succeeds may tell that the operation is to be canceled. It returns ErrLeaseLost when the fence has moved on.
	Save(ctx context.Context, progress Progress) (State, error)
	// UnfinishedKinds lists the kinds of operations that are not at an end.
	UnfinishedKinds(ctx context.Context) ([]string, error)
	// ExpirePending fails operations that wait for their turn for too long, and returns them: fewer than the limit when no more are left.
	ExpirePending(ctx context.Context, expiry Expiry) ([]Record, error)
}

// Due is work of a kind.
type Due struct {
	Kind string
	// Pending is for operations whose turn comes, else it is for those that are due again.
	Pending bool
}

// Claim asks for work.
type Claim struct {
	Due

	Owner string
	Limit int
	// CreatedAfter leaves alone what was accepted before it.
	CreatedAfter time.Time
	Now          time.Time
	Until        time.Time
}

// Claimed is an operation with the attempts of its unfinished steps.
type Claimed struct {
	Record   Record
	Attempts []Attempt
	// TakenFrom is the replica whose lease ran out, or empty.
	TakenFrom string
	// Unreadable says why the payload cannot be read, or is nil. Such an operation fails and keeps its payload.
	Unreadable error
}

// Renewal extends the leases on operations, and stores for those who look what each is doing.
type Renewal struct {
	Owner string
	Until time.Time
	Held  []Held
}

// Held is an operation under lease and what it is doing.
type Held struct {
	OperationID string
	Fence       int64
	Stage, Step string
	StepBegan   time.Time
	// Changed says that the store has not been told of this step yet.
	Changed bool
}

// Progress is what came of a run. Record carries the new values under the lease that it was claimed with.
type Progress struct {
	Record Record
	// Failed are attempts to keep, Cleared those of steps that succeeded.
	Failed, Cleared []Attempt
	Timeline        []Entry
	// KeepPayload leaves the stored payload as it is.
	KeepPayload bool
	// LeftOut is the step of a Skip that was left out, or empty. The Skip of another one, which came meanwhile, stays.
	LeftOut string
	// Release gives the lease back: the operation is due at Record.NextRun, or at once if it was woken meanwhile.
	Release bool
	Now     time.Time
}

// Expiry fails with the problem what has been pending since before the moment: so many operations at most.
type Expiry struct {
	Before, Now time.Time
	Limit       int
	Problem     Problem
}
