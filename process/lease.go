package process

import (
	"context"
	"time"
)

// renewals is how many times a lease is renewed before it would expire. One failed renewal is harmless, because the next one is
// still in time. After two failed renewals in a row, the replica stops its runs.
const renewals = 3

// lease tracks an operation that a worker of this replica runs. Engine.mutex guards the fields that change.
type lease struct {
	LeasedOperation

	kind      string
	cancel    context.CancelFunc // stops the run when the lease is lost, or the operation exceeds its limit
	ends      time.Time          // when the operation reaches its limit
	reported  time.Time          // the StepBegan that was stored last
	canceling bool               // the operation will be canceled at its next safe point
}

// renewLeases extends the leases of this replica until the context ends. It stops a run if the operation has reached its limit,
// if another replica has claimed the operation, or if another replica could claim it before the next renewal.
func (e *Engine[D]) renewLeases(ctx context.Context) {
	ticker := e.clock.NewTicker(e.config.Lease / renewals)
	defer ticker.Stop()

	until := e.now().Add(e.config.Lease)

	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C():
		}

		if now := e.now(); e.renew(ctx, now) {
			until = now.Add(e.config.Lease)
		}

		// If the leases may expire before the next renewal, for example because the database is down or the machine slept,
		// other replicas may claim the operations. Stop the steps, so that two replicas do not call an upstream at the same
		// time.
		expiring := e.now().Add(e.config.Lease / renewals).After(until)

		e.interrupt(expiring, e.now())
	}
}

// now returns the wall-clock time without its monotonic part. The monotonic clock stops while the machine sleeps, but leases
// continue to expire.
func (e *Engine[D]) now() time.Time { return e.clock.Now().Round(0) }

// renew extends all leases of this replica and applies the store's response: it stops the runs that have lost their lease, and
// marks the operations for which a cancellation was requested. It reports whether the store responded.
func (e *Engine[D]) renew(ctx context.Context, now time.Time) bool {
	leased := e.leasedOperations()
	if len(leased) == 0 {
		return true
	}

	deadline, cancel := context.WithTimeout(ctx, e.config.Lease/renewals)
	defer cancel()

	states, err := e.store.Renew(deadline, Renewal{Owner: e.owner, Until: now.Add(e.config.Lease), Operations: leased})
	if err != nil {
		if ctx.Err() == nil {
			e.log.WithError(err).Warn("renewing leases failed")
		}

		return false
	}

	e.mutex.Lock()
	defer e.mutex.Unlock()

	for _, renewed := range leased {
		lease, still := e.leases[renewed.OperationID]
		if !still || lease.Fence != renewed.Fence {
			continue // the run ended, or the operation was claimed again, during the call
		}

		switch state, ours := states[renewed.OperationID]; {
		case !ours:
			lease.cancel()
		case state == Canceling:
			lease.canceling = true

			fallthrough
		default:
			lease.reported = renewed.StepBegan
		}
	}

	return true
}

// leasedOperations lists the operations that this replica runs, with their current steps. It returns copies, so that the engine
// holds no lock during a call to the store.
func (e *Engine[D]) leasedOperations() []LeasedOperation {
	e.mutex.Lock()
	defer e.mutex.Unlock()

	all := make([]LeasedOperation, 0, len(e.leases))
	for _, lease := range e.leases {
		operation := lease.LeasedOperation
		operation.Changed = !lease.StepBegan.Equal(lease.reported)
		all = append(all, operation)
	}

	return all
}

// interrupt stops every run if all is true, and otherwise only the runs of operations that have exceeded their limit. When an
// interrupted operation is claimed again, it fails if it has exceeded its limit, and otherwise resumes.
func (e *Engine[D]) interrupt(all bool, now time.Time) {
	e.mutex.Lock()
	defer e.mutex.Unlock()

	for _, lease := range e.leases {
		if all || !now.Before(lease.ends) {
			lease.cancel()
		}
	}
}
