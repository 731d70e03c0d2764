package process

import (
	"math/rand/v2"
	"time"
)

// backoff is the pause between tries at a store that does not answer. It grows with each, and differs from replica to replica: a
// database that comes back is not met by all of them at once.
type backoff struct {
	first, longest time.Duration
	next           time.Duration
}

// backoffSteps is how many polls the longest pause is: also how long it may take until a store that is back is noticed.
const backoffSteps = 5

func newBackoff(poll time.Duration) backoff {
	return backoff{first: poll / backoffSteps, longest: poll * backoffSteps}
}

// failed makes the next pause longer.
func (b *backoff) failed() { b.next = min(max(b.first, 2*b.next), b.longest) }

// succeeded ends the pauses.
func (b *backoff) succeeded() { b.next = 0 }

// pause is how long to leave the store alone: nothing when it answered.
func (b *backoff) pause() time.Duration {
	if b.next == 0 {
		return 0
	}

	return b.next/2 + rand.N(b.next/2+1)
}
