package upstream

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/environment-broker/environment-broker/internal/failure"
)

// slotTimeout limits how long a call waits while Options.Calls other calls are in progress. A waiting call blocks a worker of
// the engine.
const slotTimeout = 5 * time.Second

// Options configures a System. All fields except Variable, Pause and Fault are required.
type Options struct {
	// Name is the value of the system label in metrics, such as provisioner.
	Name string
	// Title is the system's name in error messages, such as "the Provisioner".
	Title string
	// Component is the constant of package failure that identifies the system in errors.
	Component string
	// Calls is the maximum number of concurrent calls.
	Calls int
	// Variable is the environment variable that sets Calls, or empty if Calls is fixed. Errors about the limit name this variable.
	Variable string
	// Pause is the time for which an open circuit breaker waits before the next trial; 0 means 2 seconds.
	Pause time.Duration
	// Fault returns the reason why a response is a failure of the system, as a clause that can follow "because". For any other
	// response, it returns an empty string. Nil means ServerFault.
	Fault func(response *http.Response) string
}

// System is an upstream system with its concurrency limit and circuit breaker. All clients of an upstream in a process must share
// one System, so the limit and the circuit breaker see all calls. Replicas do not share their state. A System is safe for
// concurrent use.
type System struct {
	prometheus.Collector

	options Options
	slots   chan struct{}
	metrics *metrics

	mutex   sync.Mutex
	breaker circuitBreaker
	recent  durations
}

// New returns a System with a closed circuit breaker. The System is also a prometheus.Collector for its own metrics; the caller
// must register it.
func New(options Options) *System {
	system := &System{options: options, slots: make(chan struct{}, options.Calls)}
	system.breaker.pause = cmp.Or(options.Pause, pause)

	if options.Fault == nil {
		system.options.Fault = ServerFault
	}

	system.metrics = newMetrics(system)
	system.Collector = system.metrics

	return system
}

// Status is the state of a System in this replica.
type Status struct {
	System    string
	Component string
	State     State
	// InFlight is the number of running calls, at most Calls.
	InFlight, Calls int
	// Failures is the number of consecutive failures, the first of which started at FailingSince.
	Failures     int
	FailingSince time.Time
	// LastFault is the cause of the latest failure. It is a clause that can follow "because".
	LastFault string
	// NextTry is the time at which an open circuit breaker will allow a trial. It is zero in the other states.
	NextTry time.Time
	// Outages is the number of outages since the start of the process, including the current outage, if there is one.
	Outages int
	Latency Latency

	// trialUnderWay reports whether a half-open circuit breaker is waiting for the result of a trial.
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
		Outages: breaker.outages, Latency: s.recent.latency(), trialUnderWay: breaker.trial != nil,
	}

	if status.State == Open {
		status.NextTry = breaker.nextTry
	}

	return status
}

// call is a call in progress. It occupies a slot until it ends.
type call struct {
	system *System
	began  time.Time
	// patience is the timer that calls giveUp if this call is a trial. It is nil for other calls.
	patience *time.Timer
	once     sync.Once
}

// admit starts a call or returns an error of package failure. It checks the circuit breaker before and after the wait for a slot:
// a call that is rejected immediately need not wait, and the state may change during the wait.
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

// check returns an error if the circuit breaker does not currently allow a call.
func (s *System) check() error {
	s.mutex.Lock()
	defer s.mutex.Unlock()

	if !s.breaker.allows() {
		return s.unavailable()
	}

	return nil
}

// acquire takes a slot. It returns an error of kind Transient if no slot becomes free within slotTimeout or before the caller's
// deadline. If the caller cancels, acquire returns the error of the context instead, because the limit is not the cause.
func (s *System) acquire(ctx context.Context) error {
	select {
	case s.slots <- struct{}{}:
		return nil
	default:
	}

	wait, cancel := context.WithTimeout(ctx, slotTimeout)
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

	limit := fmt.Sprintf("the limit of %d concurrent calls to %s", s.options.Calls, s.options.Title)
	if s.options.Variable != "" {
		limit += " (" + s.options.Variable + ")"
	}

	return failure.New(failure.Transient, "%s has been reached, and no call ended in time", limit).
		WithReason(failure.ReasonBusy, s.options.Component)
}

// unavailable returns the error for a call that the circuit breaker rejects. The caller must hold the mutex.
func (s *System) unavailable() error {
	s.metrics.refused.WithLabelValues(refusedOpen).Inc()

	next := "another attempt is in progress"
	if s.breaker.trial == nil {
		next = "the next attempt is at " + s.breaker.nextTry.UTC().Format(time.RFC3339)
	}

	return failure.New(failure.Transient, "%s is unavailable: %d calls in a row have failed since %s, the last one because %s; %s",
		s.options.Title, s.breaker.failures, s.breaker.since.UTC().Format(time.RFC3339), s.breaker.last, next).
		WithReason(failure.ReasonSystemUnavailable, s.options.Component)
}

// end records the outcome of the call and frees its slot. Only the first call to end has an effect: reading a body to its end and
// closing the body both call end.
func (c *call) end(result outcome) {
	c.once.Do(func() {
		s := c.system

		took := time.Since(c.began)
		s.metrics.observe(result, took)

		s.mutex.Lock()
		defer s.mutex.Unlock()

		if result.label != canceled {
			s.recent.add(took)
		}

		if c.patience != nil {
			c.patience.Stop()
		}

		s.breaker.end(c, result)

		<-s.slots
	})
}

// giveUp is called when a trial takes longer than patience. After another pause, a different call can become the trial. This
// call continues and keeps its slot.
func (c *call) giveUp() {
	c.system.mutex.Lock()
	defer c.system.mutex.Unlock()

	c.system.breaker.giveUp(c)
}
