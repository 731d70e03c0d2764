package process

import (
	"context"
	"slices"
)

// reservedShare is the part of the workers that is kept free for the kinds that use less than their share of it: 1/reservedShare.
// So no kind starves another, and one alone gets nearly all.
const reservedShare = 2

// claim takes due work as far as there are free workers, and starts it. Each call begins with another kind, and by turns with
// what goes on and what is new. It reports whether more may be due than it could ask for.
func (e *Engine[D]) claim(ctx, runs context.Context) bool {
	more, err := e.claimDue(ctx, runs)
	if err == nil {
		e.away.succeeded()

		return more
	}

	if ctx.Err() == nil {
		e.config.Observer.ClaimFailed()
		e.log.WithError(err).Warn("operations could not be claimed")
		e.away.failed()
	}

	return false
}

func (e *Engine[D]) claimDue(ctx, runs context.Context) (more bool, err error) {
	due, err := e.look(ctx)
	if err != nil {
		return false, err
	}

	e.asks = append(e.asks[1:], e.asks[0])

	for _, ask := range e.asks {
		room := e.room(ask.Kind)
		if room == 0 || ctx.Err() != nil || !slices.Contains(due, ask) {
			continue
		}

		claimed, err := e.take(ctx, ask, room)
		if err != nil {
			return false, err
		}

		for _, work := range claimed {
			e.start(runs, work)
		}

		more = more || len(claimed) == room
	}

	return more, nil
}

// look asks of which kinds there is work: most of the time there is none, and of many kinds seldom all have some.
func (e *Engine[D]) look(ctx context.Context) ([]Due, error) {
	deadline, cancel := context.WithTimeout(ctx, e.config.Lease)
	defer cancel()

	return e.store.Due(deadline, e.kinds, e.clock.Now())
}

func (e *Engine[D]) take(ctx context.Context, ask Due, limit int) ([]Claimed, error) {
	// A claim that is under way when the engine is told to stop comes to its end: what it has taken is then handed back at once, and
	// not when its lease is over.
	deadline, cancel := context.WithTimeout(context.WithoutCancel(ctx), e.config.Lease)
	defer cancel()

	now := e.clock.Now()

	return e.store.Claim(deadline, Claim{
		Due: ask, Owner: e.owner, Limit: limit, CreatedAfter: e.config.CreatedAfter,
		Now: now, Until: now.Add(e.config.Lease),
	})
}

// room is how many more operations of the kind may run.
func (e *Engine[D]) room(kind string) int {
	e.mutex.Lock()
	defer e.mutex.Unlock()

	running := map[string]int{}
	for _, lease := range e.held {
		running[lease.kind]++
	}

	room := e.config.Workers - len(e.held)
	share := e.config.Workers / (reservedShare * len(e.kinds))

	for _, other := range e.kinds {
		if other != kind {
			room -= max(0, share-running[other])
		}
	}

	if limit, bounded := e.config.Limits[kind]; bounded {
		room = min(room, limit-running[kind])
	}

	return max(0, room)
}
