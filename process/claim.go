package process

import "context"

// ask is what the engine asks the store for at a time.
type ask struct {
	kind    string
	pending bool
}

// reservedShare is the part of the workers that is kept free for the kinds that use less than their share of it: 1/reservedShare.
// So no kind starves another, and one alone gets nearly all.
const reservedShare = 2

// claim takes due work as far as there are free workers, and starts it. Each call begins with another kind, and by turns with
// what goes on and what is new. It reports whether more may be due than it could ask for.
func (e *Engine[D]) claim(ctx, runs context.Context) bool {
	e.asks = append(e.asks[1:], e.asks[0])
	more := false

	for _, ask := range e.asks {
		room := e.room(ask.kind)
		if room == 0 || ctx.Err() != nil {
			continue
		}

		claimed, err := e.take(ctx, ask, room)
		if err != nil {
			if ctx.Err() == nil {
				e.config.Observer.ClaimFailed()
				e.log.WithError(err).Warn("operations could not be claimed")
				e.away.failed()
			}

			return false
		}

		e.away.succeeded()

		for _, work := range claimed {
			e.start(runs, work)
		}

		more = more || len(claimed) == room
	}

	return more
}

func (e *Engine[D]) take(ctx context.Context, ask ask, limit int) ([]Claimed, error) {
	// A claim that is under way when the engine is told to stop comes to its end: what it has taken is then handed back at once, and
	// not when its lease is over.
	deadline, cancel := context.WithTimeout(context.WithoutCancel(ctx), e.config.Lease)
	defer cancel()

	now := e.clock.Now()

	return e.store.Claim(deadline, Claim{
		Owner: e.owner, Kind: ask.kind, Pending: ask.pending, Limit: limit, CreatedAfter: e.config.CreatedAfter,
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
