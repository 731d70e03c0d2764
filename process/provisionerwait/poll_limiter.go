package provisionerwait

import (
	"sync"
	"time"

	"golang.org/x/time/rate"
)

// maxReservations bounds the memory of a PollLimiter. Operations that end early, or that an event wakes, do not remove their
// reservations.
const maxReservations = 50_000

// PollLimiter limits how many operations of this replica poll the Provisioner in a second. An operation that has to wait gets a
// reserved time. It runs again once at that time, instead of competing with other operations at every attempt. Each replica has
// a separate limiter, and reservations do not survive a restart.
type PollLimiter struct {
	limiter *rate.Limiter

	mu       sync.Mutex
	reserved map[string]time.Time
}

// NewPollLimiter returns a limiter that allows perSecond polls per second, in bursts of up to the same number.
func NewPollLimiter(perSecond int) *PollLimiter {
	return &PollLimiter{limiter: rate.NewLimiter(rate.Limit(perSecond), perSecond), reserved: map[string]time.Time{}}
}

// Delay returns how long the operation must wait before it may poll. If the result is 0, the operation may poll now, and its
// reservation is used up.
func (l *PollLimiter) Delay(operationID string) time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()

	now := time.Now()

	at, reserved := l.reserved[operationID]
	if !reserved {
		at = now.Add(l.limiter.ReserveN(now, 1).DelayFrom(now))
	}

	if !at.After(now) {
		delete(l.reserved, operationID)

		return 0
	}

	if len(l.reserved) >= maxReservations {
		clear(l.reserved)
	}

	l.reserved[operationID] = at

	return at.Sub(now)
}
