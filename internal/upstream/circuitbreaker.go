package upstream

import "time"

const (
	// threshold is the number of consecutive failures after which a circuit breaker opens.
	threshold = 5
	// pause is the default time for which a circuit breaker stays open before the next trial.
	pause = 2 * time.Second
	// patience is how long a half-open circuit breaker waits for the result of a trial before it opens again. The trial
	// continues, and a late success still closes the circuit breaker.
	patience = 10 * time.Second
)

// State is the state of a circuit breaker.
type State string

// The states of a circuit breaker.
const (
	// Closed allows all calls.
	Closed State = "closed"
	// Open rejects all calls before Status.NextTry.
	Open State = "open"
	// HalfOpen allows one call as a trial.
	HalfOpen State = "half-open"
)

// circuitBreaker stops calls to a system that fails.
//
// The circuit breaker opens after several consecutive failures (see threshold). After a pause, it becomes half-open: it allows
// one trial at a time. A trial that fails, or that takes longer than patience, opens it again. Any response that Options.Fault
// does not classify as a failure closes it, including a late response to a call that started before the circuit breaker opened. A
// call that the caller canceled is neither a success nor a failure.
//
// docs/adr/0009 explains the design; docs/adr/0026 explains why no library is suitable. The mutex of the System guards all
// fields.
type circuitBreaker struct {
	// pause is the time between trials.
	pause time.Duration
	// failures is the number of consecutive failed calls.
	failures int
	// since is the time at which the first of the failed calls started. last is the fault of the most recent failed call.
	since time.Time
	last  string
	// nextTry is the end of the current pause. It is zero while the circuit breaker is closed.
	nextTry time.Time
	// trial is the trial in progress, or nil.
	trial *call
	// closed is the time at which the last outage ended. It is zero if there has been none.
	closed time.Time
	// outages is the number of times that a closed circuit breaker has opened.
	outages int
}

// state derives the state from nextTry and the current time, so no timer is needed to make the circuit breaker half-open.
func (b *circuitBreaker) state() State {
	switch {
	case b.nextTry.IsZero():
		return Closed
	case time.Now().Before(b.nextTry):
		return Open
	default:
		return HalfOpen
	}
}

// allows reports whether a call can start now.
func (b *circuitBreaker) allows() bool {
	state := b.state()

	return state == Closed || state == HalfOpen && b.trial == nil
}

// start registers a call and reports whether the call is a trial. The caller must call allows first, and must hold the mutex
// until start returns.
func (b *circuitBreaker) start(call *call) bool {
	if b.state() == Closed {
		return false
	}

	b.trial = call

	return true
}

// end updates the circuit breaker with the outcome of a call. It ignores the failure of a call that started before the end of the
// last outage, because the system has responded since then.
func (b *circuitBreaker) end(call *call, result outcome) {
	trial := b.trial == call
	if trial {
		b.trial = nil
	}

	switch {
	case result.label == canceled:
	case result.fault == "":
		b.close()
	case call.began.Before(b.closed):
	default:
		if b.failures == 0 {
			b.since = call.began
		}

		b.failures++
		b.last = result.fault

		if trial || b.state() == Closed && b.failures >= threshold {
			b.open()
		}
	}
}

// giveUp allows another trial after the usual pause, provided that the call is still the current trial.
func (b *circuitBreaker) giveUp(call *call) {
	if b.trial == call {
		b.trial = nil

		b.open()
	}
}

// open starts a pause. It counts an outage only if the circuit breaker was closed.
func (b *circuitBreaker) open() {
	if b.state() == Closed {
		b.outages++
	}

	b.nextTry = time.Now().Add(b.pause)
}

// close closes the circuit breaker, and forgets all failures and the current trial.
func (b *circuitBreaker) close() {
	if b.state() != Closed {
		b.closed = time.Now()
	}

	b.failures, b.since, b.last = 0, time.Time{}, ""
	b.nextTry, b.trial = time.Time{}, nil
}
