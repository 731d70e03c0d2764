package operatorapi

import "time"

// System is how a replica of the broker sees a system that it calls.
type System struct {
	Name string `json:"name"`
	// State of the circuit breaker: closed, open or half-open.
	State string `json:"state"`
	// CallsInFlight are under way, of at most CallsLimit.
	CallsInFlight int `json:"callsInFlight"`
	CallsLimit    int `json:"callsLimit"`
	// Failures in a row began at FailingSince; LastFault says why the last call failed.
	Failures     int        `json:"failures,omitempty"`
	FailingSince *time.Time `json:"failingSince,omitempty"`
	LastFault    string     `json:"lastFault,omitempty"`
	// NextTry is when the next call is made.
	NextTry *time.Time `json:"nextTry,omitempty"`
}
