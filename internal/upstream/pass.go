package upstream

import (
	"errors"
	"sync"
	"time"

	"github.com/sony/gobreaker/v2"
)

// pass is a call under way. It holds a turn until it ends.
type pass struct {
	guard *Guard
	began time.Time
	// done tells the breaker what came of the call, once. It is nil after that.
	done     func(error)
	patience *time.Timer
	once     sync.Once
}

// end gives the turn back and tells what came of the call. Only the first end counts.
func (p *pass) end(result outcome) { p.once.Do(func() { p.settle(result) }) }

func (p *pass) settle(result outcome) {
	g := p.guard

	g.metrics.observe(result, time.Since(p.began))

	g.mutex.Lock()
	defer g.mutex.Unlock()

	if p.patience != nil {
		p.patience.Stop()
	}

	switch {
	case result.label == canceled:
	case result.fault == "":
		g.failures, g.since, g.last = 0, time.Time{}, ""
	default:
		if g.failures == 0 {
			g.since = p.began
		}

		g.failures++
		g.last = result.fault
	}

	p.tell(result.verdict())

	// Whoever answers is there, however late: also to a call that began before the breaker opened.
	if result.label == answered && g.breaker.State() != gobreaker.StateClosed {
		g.breaker = g.newBreaker()
		g.trial = nil
	}

	<-g.turns
}

// outstayed makes room for another trial.
func (p *pass) outstayed() {
	p.guard.mutex.Lock()
	defer p.guard.mutex.Unlock()

	p.tell(errors.New("no answer yet"))
}

// tell tells the breaker what came of the call. The mutex is held.
func (p *pass) tell(verdict error) {
	if p.done == nil {
		return
	}

	if p.guard.trial == p {
		p.guard.trial = nil
	}

	p.done(verdict)
	p.done = nil
}
