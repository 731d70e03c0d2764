package upstream

import (
	"time"

	"github.com/sony/gobreaker/v2"
)

// State is a breaker's.
type State string

// The states of a breaker.
const (
	// Closed: calls are made.
	Closed State = "closed"
	// Open: no call is made before NextTry.
	Open State = "open"
	// HalfOpen: one call is made as a trial.
	HalfOpen State = "half-open"
)

// Status is how a guard of this replica sees its system.
type Status struct {
	System    string
	Component string
	State     State
	// InFlight are the calls under way, of at most Calls.
	InFlight, Calls int
	// Failures in a row began at FailingSince; LastFault completes "because …".
	Failures     int
	FailingSince time.Time
	LastFault    string
	// NextTry is when a breaker that is open lets a call pass.
	NextTry time.Time
	// Outages counts how many times the breaker has opened after it was closed.
	Outages int

	// trialUnderWay says that somebody finds out at this moment whether the system is back.
	trialUnderWay bool
}

// Status tells how the guard sees its system.
func (g *Guard) Status() Status {
	g.mutex.Lock()
	defer g.mutex.Unlock()

	status := Status{
		System: g.options.System, Component: g.options.Component, State: stateOf(g.breaker.State()),
		InFlight: len(g.turns), Calls: g.options.Calls,
		Failures: g.failures, FailingSince: g.since, LastFault: g.last,
		Outages: g.outages, trialUnderWay: g.trial != nil,
	}

	if status.State == Open {
		status.NextTry = g.nextTry
	}

	return status
}

func stateOf(state gobreaker.State) State {
	switch state {
	case gobreaker.StateOpen:
		return Open
	case gobreaker.StateHalfOpen:
		return HalfOpen
	case gobreaker.StateClosed:
	}

	return Closed
}
