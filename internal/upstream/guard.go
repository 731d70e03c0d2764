package upstream

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/sony/gobreaker/v2"

	"github.com/environment-broker/environment-broker/internal/failure"
)

const (
	// threshold is how many failures in a row open the breaker.
	threshold = 5
	// pause is how long after a failure the next trial may be made.
	pause = 2 * time.Second
	// patience is how long a trial keeps others from being made. The call itself goes on, and is believed when it is answered.
	patience = 10 * time.Second
	// longestWait is how long a call waits for its turn: a worker must not hang.
	longestWait = 5 * time.Second
)

// Options say what is guarded.
type Options struct {
	// System is the name in metrics: provisioner, gardener.
	System string
	// Title is the name in sentences: the Provisioner.
	Title string
	// Component is what errors name as their origin.
	Component string
	// Calls is how many calls may run at the same time.
	Calls int
	// Variable is what sets Calls.
	Variable string
}

// Guard stands between a client and a system. All calls to the system share one.
type Guard struct {
	options Options
	turns   chan struct{}
	metrics *metrics

	mutex   sync.Mutex
	breaker *gobreaker.TwoStepCircuitBreaker[struct{}]
	// failures in a row began since then; the last one said so.
	failures int
	since    time.Time
	last     string
	nextTry  time.Time
	trial    *pass
	outages  int
}

// New returns a guard whose breaker is closed.
func New(options Options) *Guard {
	guard := &Guard{options: options, turns: make(chan struct{}, options.Calls)}
	guard.metrics = newMetrics(guard)
	guard.breaker = guard.newBreaker()

	return guard
}

// errUnjudged ends a call that says nothing about the system.
var errUnjudged = errors.New("the call was given up by its caller")

func (g *Guard) newBreaker() *gobreaker.TwoStepCircuitBreaker[struct{}] {
	return gobreaker.NewTwoStepCircuitBreaker[struct{}](gobreaker.Settings{
		Name:        g.options.System,
		Timeout:     pause,
		ReadyToTrip: func(counts gobreaker.Counts) bool { return counts.ConsecutiveFailures >= threshold },
		IsExcluded:  func(err error) bool { return errors.Is(err, errUnjudged) },
		// It is called by calls of the breaker, all of which are made under the mutex.
		OnStateChange: func(_ string, from, to gobreaker.State) {
			if to == gobreaker.StateOpen {
				g.nextTry = time.Now().Add(pause)
			}

			if from == gobreaker.StateClosed {
				g.outages++
			}
		},
	})
}

// admit lets a call pass, when it is its turn, or explains why not.
func (g *Guard) admit(ctx context.Context) (*pass, error) {
	if err := g.refuseEarly(); err != nil {
		return nil, err
	}

	if err := g.takeTurn(ctx); err != nil {
		return nil, err
	}

	g.mutex.Lock()
	defer g.mutex.Unlock()

	state := g.breaker.State()

	done, err := g.breaker.Allow()
	if err != nil {
		<-g.turns

		return nil, g.refusal()
	}

	pass := &pass{guard: g, began: time.Now(), done: done}

	if state == gobreaker.StateHalfOpen {
		g.trial = pass
		pass.patience = time.AfterFunc(patience, pass.outstayed)
	}

	return pass, nil
}

// refuseEarly refuses a call without having it wait, when it would be refused after the wait.
func (g *Guard) refuseEarly() error {
	g.mutex.Lock()
	defer g.mutex.Unlock()

	state := g.breaker.State()
	if state == gobreaker.StateOpen || state == gobreaker.StateHalfOpen && g.trial != nil {
		return g.refusal()
	}

	return nil
}

func (g *Guard) takeTurn(ctx context.Context) error {
	select {
	case g.turns <- struct{}{}:
		return nil
	default:
	}

	timer := time.NewTimer(longestWait)
	defer timer.Stop()

	select {
	case g.turns <- struct{}{}:
		return nil
	case <-ctx.Done():
		if errors.Is(ctx.Err(), context.Canceled) {
			return fmt.Errorf("waiting for a turn to call %s: %w", g.options.Title, ctx.Err())
		}
	case <-timer.C:
	}

	g.metrics.refused.WithLabelValues(refusedFull).Inc()

	return failure.New(failure.Transient, "%d calls to %s run already, as many as may (%s): no turn came in time",
		g.options.Calls, g.options.Title, g.options.Variable).WithReason(failure.ReasonBusy, g.options.Component)
}

// refusal explains why no call is made. The mutex is held.
func (g *Guard) refusal() error {
	g.metrics.refused.WithLabelValues(refusedOpen).Inc()

	again := "it is being tried again at this moment"
	if g.trial == nil {
		again = "it is tried again at " + g.nextTry.UTC().Format(time.RFC3339)
	}

	return failure.New(failure.Transient, "%s is not called for now: %d calls in a row have failed since %s, the last one because %s; %s",
		g.options.Title, g.failures, g.since.UTC().Format(time.RFC3339), g.last, again).
		WithReason(failure.ReasonSystemAway, g.options.Component)
}
