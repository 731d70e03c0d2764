package process

import (
	"context"
	"time"
)

// renewLeases extends the leases of this replica until the context ends.
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

		// The database is away, or the machine slept. Others may carry these operations before the next look.
		if e.now().Add(e.config.Lease / renewals).After(until) {
			e.abandon()
		}

		e.stopOverdue(e.now())
	}
}

// now is the wall clock: it goes on while the machine sleeps, as the leases do.
func (e *Engine[D]) now() time.Time { return e.clock.Now().Round(0) }

// renew extends every lease, stops the runs whose lease was lost, and marks those that are to be canceled.
func (e *Engine[D]) renew(ctx context.Context, now time.Time) bool {
	held := e.holding()
	if len(held) == 0 {
		return true
	}

	deadline, cancel := context.WithTimeout(ctx, e.config.Lease/renewals)
	defer cancel()

	states, err := e.store.Renew(deadline, Renewal{Owner: e.owner, Until: now.Add(e.config.Lease), Held: held})
	if err != nil {
		if ctx.Err() == nil {
			e.log.WithError(err).Warn("leases could not be renewed")
		}

		return false
	}

	e.mutex.Lock()
	defer e.mutex.Unlock()

	for _, asked := range held {
		lease, still := e.held[asked.OperationID]
		if !still || lease.Fence != asked.Fence {
			continue // it ended, or began anew, while the store was asked
		}

		switch state, ours := states[asked.OperationID]; {
		case !ours:
			lease.cancel()
		case state == Canceling:
			lease.canceling = true

			fallthrough
		default:
			lease.told = asked.StepBegan
		}
	}

	return true
}

// holding lists what this replica carries and what each is doing.
func (e *Engine[D]) holding() []Held {
	e.mutex.Lock()
	defer e.mutex.Unlock()

	held := make([]Held, 0, len(e.held))
	for _, lease := range e.held {
		asked := lease.Held
		asked.Changed = !lease.StepBegan.Equal(lease.told)
		held = append(held, asked)
	}

	return held
}

// abandon stops every run.
func (e *Engine[D]) abandon() {
	e.mutex.Lock()
	defer e.mutex.Unlock()

	for _, lease := range e.held {
		lease.cancel()
	}
}

// stopOverdue interrupts steps that go on beyond the limit of their operation. Its next run then ends it.
func (e *Engine[D]) stopOverdue(now time.Time) {
	e.mutex.Lock()
	defer e.mutex.Unlock()

	for _, lease := range e.held {
		if !now.Before(lease.ends) {
			lease.cancel()
		}
	}
}
