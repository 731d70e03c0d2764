package process

import (
	"context"
	"errors"
	"time"
)

// ErrLeaseLost reports that the operation was claimed again, usually by another replica, and that nothing was written.
var ErrLeaseLost = errors.New("lease lost to another replica")

// Store persists the operations. Package storage/operations implements it. The engine passes all times as arguments, so a replica
// never mixes its own clock with the clock of the database. Methods are called concurrently and must return when their context
// ends.
type Store interface {
	// Due reports which of the given kinds have work. It is called at every poll and wake-up, so it must be cheap. A later Claim
	// may return nothing, because other replicas claim, too.
	Due(ctx context.Context, kinds []string, now time.Time) ([]Due, error)
	// Claim claims operations of one kind for the owner. If claim.Pending is true, it takes pending operations, round-robin by
	// tenant, and changes them to in progress; an operation that must wait for an older one of the same instance stays pending. If
	// claim.Pending is false, it takes operations that are due again.
	Claim(ctx context.Context, claim Claim) ([]Claimed, error)
	// Renew extends the owner's leases. It returns the states of the operations whose leases the owner still has, keyed by
	// operation ID. It never revives a lease that was released or lost.
	Renew(ctx context.Context, renewal Renewal) (map[string]State, error)
	// Save writes the progress of a run in one transaction and returns the resulting state, which is Canceling if a cancellation
	// was requested in the meantime. It returns ErrLeaseLost if another claim has raised the fence, and an EffectError if the
	// effect fails.
	Save(ctx context.Context, progress Progress) (State, error)
	// UnfinishedKinds lists the kinds of operations that have not ended. The engine refuses to start if it has no process for one
	// of them.
	UnfinishedKinds(ctx context.Context) ([]string, error)
	// ExpirePending fails operations that have been pending for too long and returns them. If it returns fewer than expiry.Limit,
	// no more are left. Each operation is returned to only one replica.
	ExpirePending(ctx context.Context, expiry Expiry) ([]Record, error)
}

// Due identifies work: operations of a kind that are either pending or due again.
type Due struct {
	Kind string
	// Pending reports that the operations have not started. If it is false, they have started and are due again.
	Pending bool
}

// Claim is a request for work of one kind.
type Claim struct {
	Due

	// Owner identifies the replica. It is a random ID that changes with each start.
	Owner string
	// Limit is the maximum number of operations to claim.
	Limit int
	// CreatedAfter, if set, excludes operations that were accepted before this time, except those that are being canceled.
	CreatedAfter time.Time
	Now          time.Time
	// Until is when the lease expires.
	Until time.Time
}

// Claimed is a claimed operation with the attempts of its unfinished steps.
type Claimed struct {
	Record   Record
	Attempts []Attempt
	// TakenFrom is the previous owner whose lease expired, or empty if the operation was not taken over. If set, the timeline gets
	// a TakenOver entry.
	TakenFrom string
	// Unreadable is the error from decrypting the payload, or nil. An operation with an unreadable payload fails but keeps the
	// payload, so that an operator can add the missing key and retry.
	Unreadable error
}

// Renewal extends the leases of operations and records the step that each operation runs.
type Renewal struct {
	Owner      string
	Until      time.Time
	Operations []LeasedOperation
}

// LeasedOperation is an operation under lease and the step that it runs.
type LeasedOperation struct {
	OperationID string
	Fence       int64
	Stage, Step string
	StepBegan   time.Time
	// Changed reports whether the step differs from the stored one. Most steps end before the next renewal, so few renewals write
	// a step.
	Changed bool
}

// Progress is the result of a run since its last write. The store writes it completely or not at all, in one transaction.
type Progress struct {
	// Record has the new values, and the lease under which the operation was claimed.
	Record Record
	// Failed lists the attempts to store, because their steps run again. Cleared lists the attempts to delete, because their
	// steps succeeded or were skipped.
	Failed, Cleared []Attempt
	// Timeline lists the new entries, oldest first.
	Timeline []Entry
	// KeepPayload is true if the store must leave the stored payload unchanged.
	KeepPayload bool
	// EndedSteps lists the steps that were done or skipped. The store clears the request to skip a step only if the request names
	// one of them, because the operator may have requested another skip in the meantime.
	EndedSteps []string
	// Release is true if the store must release the lease. The operation is then due at Record.NextRun, or immediately if it was
	// woken in the meantime.
	Release bool
	// Effect is the effect of an operation that succeeds, or nil. The store executes it before it updates the operation's row, so
	// that all transactions lock the other rows first. If the operation has been canceled in the meantime, the effect is not
	// executed.
	Effect Effect
	Now    time.Time
}

// EffectError wraps the error of an effect. If Store.Save returns it, the store has written nothing.
type EffectError struct{ Err error }

// Error implements error.
func (e *EffectError) Error() string { return "writing the result of the operation: " + e.Err.Error() }

// Unwrap returns the error of the effect, for errors.Is and errors.As.
func (e *EffectError) Unwrap() error { return e.Err }

// Expiry selects at most Limit operations that were accepted before Before and are still pending. They fail with Problem.
type Expiry struct {
	Before, Now time.Time
	Limit       int
	Problem     Problem
}
