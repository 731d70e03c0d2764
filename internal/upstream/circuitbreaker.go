package upstream

import "time"

const (
	// threshold is the number of failures in a row that opens a circuit breaker.
	threshold = 5
	// pause is the time between a failure that opens it and the next trial.
	pause = 2 * time.Second
	// patience is how long a trial keeps others from being made. The call itself continues, and its answer counts.
	patience = 10 * time.Second
)

// State is the state of a circuit breaker.
type State string

// The states of a circuit breaker.
const (
	// Closed lets all calls through.
	Closed State = "closed"
	// Open lets no call through before Status.NextTry.
	Open State = "open"
	// HalfOpen lets one call through as a trial.
	HalfOpen State = "half-open"
)

// circuitBreaker stops calls to a system that does not work. After threshold failures in a row it is open for pause, then half-open: one
// trial at a time. A trial that fails, or is not answered within patience, opens it again. Any answer closes it, also a late one to a call
// from before it opened: a system that answers works. A call that its caller gives up says nothing about the system.
//
// docs/adr/0009 has the reasons, docs/adr/0026 says why no library does this. The mutex of the System guards it.
type circuitBreaker struct {
	// failures in a row started at since, and last is the reason of the latest.
	failures int
	since    time.Time
	last     string
	// nextTry is the end of the current pause; zero if the circuit breaker is closed.
	nextTry time.Time
	trial   *call
	// closed is when the last outage ended.
	closed  time.Time
	outages int
}

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

func (b *circuitBreaker) allows() bool {
	state := b.state()

	return state == Closed || state == HalfOpen && b.trial == nil
}

// start registers a call that is allowed. It reports whether the call is a trial.
func (b *circuitBreaker) start(call *call) bool {
	if b.state() == Closed {
		return false
	}

	b.trial = call

	return true
}

// end takes the outcome of a call into account.
func (b *circuitBreaker) end(call *call, result outcome) {
	trial := b.trial == call
	if trial {
		b.trial = nil
	}

	switch {
	case result.label == canceled:
	case result.fault == "":
		b.close()
	case call.began.Before(b.closed): // the system has answered since
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

// giveUp makes room for another trial, after the usual pause.
func (b *circuitBreaker) giveUp(call *call) {
	if b.trial == call {
		b.trial = nil

		b.open()
	}
}

func (b *circuitBreaker) open() {
	if b.state() == Closed {
		b.outages++
	}

	b.nextTry = time.Now().Add(pause)
}

func (b *circuitBreaker) close() {
	if b.state() != Closed {
		b.closed = time.Now()
	}

	b.failures, b.since, b.last = 0, time.Time{}, ""
	b.nextTry, b.trial = time.Time{}, nil
}
