package upstream

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/environment-broker/environment-broker/internal/failure"
)

// longestWait bounds how long a call waits for a slot: a worker must not hang.
const longestWait = 5 * time.Second

// Options describe a System.
type Options struct {
	// Name is the label in metrics: provisioner, gardener.
	Name string
	// Title is the name in sentences: the Provisioner.
	Title string
	// Component is the origin that errors name.
	Component string
	// Calls is the number of calls that may run at the same time.
	Calls int
	// Variable is the environment variable that sets Calls.
	Variable string
}

// System is an upstream system. All clients of one system in a process share it, so that its limit and its circuit breaker count all calls.
// Replicas do not share their state.
type System struct {
	options Options
	slots   chan struct{}
	metrics *metrics

	mutex   sync.Mutex
	breaker circuitBreaker
}

// New returns a System whose circuit breaker is closed. It is a prometheus.Collector of its own metrics; the caller registers it.
func New(options Options) *System {
	system := &System{options: options, slots: make(chan struct{}, options.Calls)}
	system.metrics = newMetrics(system)

	return system
}

// Status is the state of a System, as this replica sees it.
type Status struct {
	System    string
	Component string
	State     State
	// InFlight is the number of running calls, at most Calls.
	InFlight, Calls int
	// Failures is the number of failures in a row since FailingSince; LastFault completes "because …".
	Failures     int
	FailingSince time.Time
	LastFault    string
	// NextTry is when an open circuit breaker lets a call through.
	NextTry time.Time
	// Outages counts how often the circuit breaker has opened after it was closed.
	Outages int

	// trialUnderWay says that a call is about to find out whether the system works again.
	trialUnderWay bool
}

// Status returns the current state of the system.
func (s *System) Status() Status {
	s.mutex.Lock()
	defer s.mutex.Unlock()

	breaker := &s.breaker
	status := Status{
		System: s.options.Name, Component: s.options.Component, State: breaker.state(),
		InFlight: len(s.slots), Calls: s.options.Calls,
		Failures: breaker.failures, FailingSince: breaker.since, LastFault: breaker.last,
		Outages: breaker.outages, trialUnderWay: breaker.trial != nil,
	}

	if status.State == Open {
		status.NextTry = breaker.nextTry
	}

	return status
}

// call is a running call. It holds a slot until it ends.
type call struct {
	system *System
	began  time.Time
	// patience runs during a trial.
	patience *time.Timer
	once     sync.Once
}

// admit starts a call, or fails with an error of package failure. It checks the circuit breaker before it waits for a slot and again
// afterwards: a call that cannot be made need not wait.
func (s *System) admit(ctx context.Context) (*call, error) {
	if err := s.check(); err != nil {
		return nil, err
	}

	if err := s.acquire(ctx); err != nil {
		return nil, err
	}

	s.mutex.Lock()
	defer s.mutex.Unlock()

	if !s.breaker.allows() {
		<-s.slots

		return nil, s.unavailable()
	}

	made := &call{system: s, began: time.Now()}
	if s.breaker.start(made) {
		made.patience = time.AfterFunc(patience, made.giveUp)
	}

	return made, nil
}

// check fails while the circuit breaker allows no call.
func (s *System) check() error {
	s.mutex.Lock()
	defer s.mutex.Unlock()

	if !s.breaker.allows() {
		return s.unavailable()
	}

	return nil
}

// acquire takes a slot. It fails with failure.Transient if none becomes free within longestWait or the caller's deadline, and with the error of
// the context if the caller gives up.
func (s *System) acquire(ctx context.Context) error {
	select {
	case s.slots <- struct{}{}:
		return nil
	default:
	}

	wait, cancel := context.WithTimeout(ctx, longestWait)
	defer cancel()

	select {
	case s.slots <- struct{}{}:
		return nil
	case <-wait.Done():
	}

	if errors.Is(ctx.Err(), context.Canceled) {
		return fmt.Errorf("waiting to call %s: %w", s.options.Title, ctx.Err())
	}

	s.metrics.refused.WithLabelValues(refusedLimit).Inc()

	return failure.New(failure.Transient, "%d calls to %s are running, which is the limit (%s), and none of them ended in time",
		s.options.Calls, s.options.Title, s.options.Variable).WithReason(failure.ReasonBusy, s.options.Component)
}

// unavailable explains why no call is made. The mutex is held.
func (s *System) unavailable() error {
	s.metrics.refused.WithLabelValues(refusedOpen).Inc()

	next := "a new attempt is under way"
	if s.breaker.trial == nil {
		next = "the next attempt is at " + s.breaker.nextTry.UTC().Format(time.RFC3339)
	}

	return failure.New(failure.Transient, "%s is unavailable: %d calls in a row have failed since %s, the last one because %s; %s",
		s.options.Title, s.breaker.failures, s.breaker.since.UTC().Format(time.RFC3339), s.breaker.last, next).
		WithReason(failure.ReasonSystemAway, s.options.Component)
}

// end records the outcome and frees the slot. Only the first end of a call counts.
func (c *call) end(result outcome) {
	c.once.Do(func() {
		s := c.system

		s.metrics.observe(result, time.Since(c.began))

		s.mutex.Lock()
		defer s.mutex.Unlock()

		if c.patience != nil {
			c.patience.Stop()
		}

		s.breaker.end(c, result)

		<-s.slots
	})
}

// giveUp lets another call become the trial. This call continues and keeps its slot.
func (c *call) giveUp() {
	c.system.mutex.Lock()
	defer c.system.mutex.Unlock()

	c.system.breaker.giveUp(c)
}
