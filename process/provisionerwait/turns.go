package provisionerwait

import (
	"sync"
	"time"

	"golang.org/x/time/rate"
)

// keptTurns bounds how many turns are kept. Most that are never used belong to operations that ended, or were woken, before their turn.
const keptTurns = 50_000

// Turns are when operations may ask the Provisioner, at most so many in a second. An operation that has to wait is given a time of its own:
// it comes back once, and not again and again until nobody is before it. Each replica has its own.
type Turns struct {
	limiter *rate.Limiter

	mu    sync.Mutex
	given map[string]time.Time
}

// NewTurns lets so many operations ask in a second.
func NewTurns(perSecond int) *Turns {
	return &Turns{limiter: rate.NewLimiter(rate.Limit(perSecond), perSecond), given: map[string]time.Time{}}
}

// Wait is how long it is until the operation's turn. It is nothing when the operation may ask now, which ends its turn.
func (t *Turns) Wait(operationID string) time.Duration {
	t.mu.Lock()
	defer t.mu.Unlock()

	now := time.Now()

	turn, given := t.given[operationID]
	if !given {
		turn = now.Add(t.limiter.ReserveN(now, 1).DelayFrom(now))
	}

	if !turn.After(now) {
		delete(t.given, operationID)

		return 0
	}

	if len(t.given) >= keptTurns {
		clear(t.given)
	}

	t.given[operationID] = turn

	return turn.Sub(now)
}
