package process

import (
	"context"
	"slices"
	"time"
)

// One in reservedShare workers is reserved. The reserved workers are divided equally among the kinds. A kind may use its own
// reserved workers and all unreserved ones. With at least two workers per kind, no kind can therefore starve another. If only one
// kind has work, it gets more than half of the workers.
const reservedShare = 2

// While requests are waiting, only one in busyShare workers runs operations: clients notice a delay of milliseconds, whereas an
// operation takes minutes anyway.
const busyShare = 15

// claimWork claims due operations for the free workers and starts them. It reports whether more operations may be due. If the
// store fails, the pause before the next call becomes longer.
func (e *Engine[D]) claimWork(ctx, runs context.Context) bool {
	more, err := e.startDue(ctx, runs)
	if err == nil {
		e.storeFailures = 0

		return more
	}

	if ctx.Err() == nil {
		e.config.Observer.ClaimFailed()
		e.log.WithError(err).Warn("claiming operations failed")
		e.storeFailures++
	}

	return false
}

// startDue claims work in the order of the schedule and starts it. Each call rotates the schedule by one entry, so that each
// entry (the pending or the resumed operations of one kind) comes first in turn. more reports whether a claim reached its limit,
// so that more operations may be due.
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

// findDue returns the kinds that have work. Most polls find no work, so one cheap query avoids a claim for each kind.
func (e *Engine[D]) findDue(ctx context.Context) ([]Due, error) {
	deadline, cancel := context.WithTimeout(ctx, e.config.Lease)
	defer cancel()

	return e.store.Due(deadline, e.kinds, e.clock.Now())
}

// claim claims at most limit operations. The higher fence invalidates all later writes of earlier runs of these operations.
func (e *Engine[D]) claim(ctx context.Context, due Due, limit int) ([]Claimed, error) {
	// Let a claim in flight finish even if the engine is stopping. Its operations are then handed back immediately, instead of
	// staying blocked until their leases expire.
	deadline, cancel := context.WithTimeout(context.WithoutCancel(ctx), e.config.Lease)
	defer cancel()

	now := e.clock.Now()

	return e.store.Claim(deadline, Claim{
		Due: due, Owner: e.owner, Limit: limit, CreatedAfter: e.config.CreatedAfter,
		Now: now, Until: now.Add(e.config.Lease),
	})
}

// capacity returns how many more operations of the given kind may run: the free workers, minus the unused reserves of other
// kinds, up to the limit in Config.Limits.
func (e *Engine[D]) capacity(kind string) int {
	e.mutex.Lock()
	defer e.mutex.Unlock()

	running := map[string]int{}
	for _, lease := range e.leases {
		running[lease.kind]++
	}

	workers := e.workers()
	capacity := workers - len(e.leases)
	share := workers / (reservedShare * len(e.kinds))

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

// workers returns how many operations may run at the same time: Config.Workers, or one in busyShare of them if requests are
// waiting.
func (e *Engine[D]) workers() int {
	if e.config.Busy == nil || !e.config.Busy() {
		return e.config.Workers
	}

	return min(e.config.Workers, max(1, e.config.Workers/busyShare))
}

// storePause returns the pause before the next call to the store: 0 after a success, and longer after each consecutive failure.
// It grows from a tenth of the poll interval to at most five times the poll interval, so that the engine soon notices a recovery.
// Jitter prevents all replicas from returning to a recovering database at the same time.
func (e *Engine[D]) storePause() time.Duration {
	if e.storeFailures == 0 {
		return 0
	}

	const shortest, longest = 0.1, 2.5 // in poll intervals, before jitter

	poll := float64(e.config.Poll)
	policy := RetryPolicy{First: time.Duration(shortest * poll), Cap: time.Duration(longest * poll), Factor: 2, Jitter: 1}

	return policy.Interval(e.storeFailures)
}

const (
	// expireInterval is the time between searches for pending operations that are too old. It is long because each search reads
	// all pending operations.
	expireInterval = time.Minute
	// expireBatch limits the number of operations that fail in one transaction, to keep the transaction short.
	expireBatch = 100
)

// expirePending regularly fails operations that have been pending for longer than Config.PendingLimit. It returns when the
// context ends. Every replica runs it; the store returns each expired operation to only one of them.
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
			// There may be more expired operations.
		}
	}
}

// expireSome fails one batch of pending operations and returns its size. After an error it returns 0, and the next search tries
// again.
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
