package process

import (
	"context"
	"math/rand/v2"
	"slices"
	"time"
)

// reservedShare reserves 1/reservedShare of the workers for kinds that use less than their equal share of it. No kind can starve
// another, and a single busy kind still gets nearly all workers.
const reservedShare = 2

// claimWork claims due operations for the free workers and starts them. Calls rotate kinds and alternate resumed and new work. It
// reports whether more may be due. Errors of the store lengthen the store backoff.
func (e *Engine[D]) claimWork(ctx, runs context.Context) bool {
	more, err := e.startDue(ctx, runs)
	if err == nil {
		e.storeBackoff.succeeded()

		return more
	}

	if ctx.Err() == nil {
		e.config.Observer.ClaimFailed()
		e.log.WithError(err).Warn("claiming operations failed")
		e.storeBackoff.failed()
	}

	return false
}

// startDue claims work in the order of the schedule, which rotates by one at each call, and reports whether a claim used all free workers.
func (e *Engine[D]) startDue(ctx, runs context.Context) (more bool, err error) {
	due, err := e.findDue(ctx)
	if err != nil {
		return false, err
	}

	e.schedule = append(e.schedule[1:], e.schedule[0])

	for _, next := range e.schedule {
		capacity := e.capacity(next.Kind)
		if capacity == 0 || ctx.Err() != nil || !slices.Contains(due, next) {
			continue
		}

		claimed, err := e.claim(ctx, next, capacity)
		if err != nil {
			return false, err
		}

		for _, work := range claimed {
			e.start(runs, work)
		}

		more = more || len(claimed) == capacity
	}

	return more, nil
}

// findDue asks the store which kinds have work: one cheap query, because most of the time there is none.
func (e *Engine[D]) findDue(ctx context.Context) ([]Due, error) {
	deadline, cancel := context.WithTimeout(ctx, e.config.Lease)
	defer cancel()

	return e.store.Due(deadline, e.kinds, e.clock.Now())
}

// claim claims at most limit operations and fences all earlier runs of them.
func (e *Engine[D]) claim(ctx context.Context, due Due, limit int) ([]Claimed, error) {
	// A claim in flight finishes even when the engine stops: the claimed operations are then handed back at once, instead of when
	// their leases expire.
	deadline, cancel := context.WithTimeout(context.WithoutCancel(ctx), e.config.Lease)
	defer cancel()

	now := e.clock.Now()

	return e.store.Claim(deadline, Claim{
		Due: due, Owner: e.owner, Limit: limit, CreatedAfter: e.config.CreatedAfter,
		Now: now, Until: now.Add(e.config.Lease),
	})
}

// capacity returns how many more operations of the kind may run.
func (e *Engine[D]) capacity(kind string) int {
	e.mutex.Lock()
	defer e.mutex.Unlock()

	running := map[string]int{}
	for _, lease := range e.held {
		running[lease.kind]++
	}

	capacity := e.config.Workers - len(e.held)
	share := e.config.Workers / (reservedShare * len(e.kinds))

	for _, other := range e.kinds {
		if other != kind {
			capacity -= max(0, share-running[other])
		}
	}

	if limit, bounded := e.config.Limits[kind]; bounded {
		capacity = min(capacity, limit-running[kind])
	}

	return max(0, capacity)
}

// backoff is the pause between calls to a store that does not answer. It doubles with each failure and is jittered, so that replicas
// do not all return to a recovering database at once.
type backoff struct {
	first, longest time.Duration
	next           time.Duration
}

// backoffSteps is the longest pause in polls, which also bounds how long a recovered store goes unnoticed.
const backoffSteps = 5

// newBackoff returns a backoff whose pauses grow from a fifth of the poll interval to five times it.
func newBackoff(poll time.Duration) backoff {
	return backoff{first: poll / backoffSteps, longest: poll * backoffSteps}
}

// failed lengthens the next pause.
func (b *backoff) failed() { b.next = min(max(b.first, 2*b.next), b.longest) }

// succeeded resets the pause.
func (b *backoff) succeeded() { b.next = 0 }

// pause returns how long to leave the store alone: 0 after a success.
func (b *backoff) pause() time.Duration {
	if b.next == 0 {
		return 0
	}

	return b.next/2 + rand.N(b.next/2+1)
}

const (
	// expireInterval is the time between searches for pending operations that are too old. Each search reads everything pending.
	expireInterval = time.Minute
	// expireBatch bounds how many operations fail in one transaction, which keeps it short.
	expireBatch = 100
)

// expirePending fails operations that are pending for longer than the limit, until the context ends.
func (e *Engine[D]) expirePending(ctx context.Context) {
	ticker := e.clock.NewTicker(expireInterval)
	defer ticker.Stop()

	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C():
		}

		for e.expireSome(ctx) == expireBatch {
			// there may be more
		}
	}
}

// expireSome fails one batch of pending operations and returns its size.
func (e *Engine[D]) expireSome(ctx context.Context) int {
	deadline, cancel := context.WithTimeout(ctx, e.config.Lease)
	defer cancel()

	now := e.clock.Now()

	expired, err := e.store.ExpirePending(deadline, Expiry{
		Before: now.Add(-e.config.PendingLimit), Now: now, Limit: expireBatch,
		Problem: e.timedOut("the operation did not start", e.config.PendingLimit),
	})
	if err != nil && ctx.Err() == nil {
		e.log.WithError(err).Warn("expiring pending operations failed")
	}

	if len(expired) > 0 {
		e.log.WithField("operations", len(expired)).Error("operations failed because they did not start in time")
	}

	for _, record := range expired {
		e.Ended(record)
	}

	return len(expired)
}
