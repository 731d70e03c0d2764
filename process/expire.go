package process

import (
	"context"
	"time"
)

const (
	// expireEvery is how often operations are looked for whose turn did not come in time: all that is pending is read for it.
	expireEvery = time.Minute
	// expireAtOnce is how many of them fail in one transaction, so that it ends in time however many there are.
	expireAtOnce = 100
)

// expirePending fails operations whose turn never came, until the context ends.
func (e *Engine[D]) expirePending(ctx context.Context) {
	ticker := e.clock.NewTicker(expireEvery)
	defer ticker.Stop()

	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C():
		}

		for e.expireSome(ctx) == expireAtOnce {
			// there may be more
		}
	}
}

func (e *Engine[D]) expireSome(ctx context.Context) int {
	deadline, cancel := context.WithTimeout(ctx, e.config.Lease)
	defer cancel()

	now := e.clock.Now()

	expired, err := e.store.ExpirePending(deadline, Expiry{
		Before: now.Add(-e.config.PendingLimit), Now: now, Limit: expireAtOnce, Problem: e.timedOut("its turn did not come", e.config.PendingLimit),
	})
	if err != nil && ctx.Err() == nil {
		e.log.WithError(err).Warn("pending operations could not be checked for their limit")
	}

	if len(expired) > 0 {
		e.log.WithField("operations", len(expired)).Error("operations failed because their turn did not come in time")
	}

	for _, record := range expired {
		e.Ended(record)
	}

	return len(expired)
}
