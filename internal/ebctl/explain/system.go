package explain

import (
	"fmt"

	"github.com/environment-broker/environment-broker/internal/ebctl/output"
	"github.com/environment-broker/environment-broker/internal/operatorapi"
)

// The states of a circuit breaker, as the operator API names them.
const (
	breakerClosed = "closed"
	breakerOpen   = "open"
)

// away reports whether the system is unavailable.
func away(system *operatorapi.System) bool { return system != nil && system.State != breakerClosed }

// SystemText is how the system stands that holds the operation up, in one line, or nothing.
func (e Explanation) SystemText() string {
	if e.System == nil {
		return ""
	}

	system := e.System

	text := system.Name + " answers"
	if system.Failures > 0 {
		text = fmt.Sprintf("%s: %d calls in a row have failed since %s, the last one because %s",
			system.Name, system.Failures, output.TimeOf(system.FailingSince), system.LastFault)
	}

	switch {
	case !away(system):
		return fmt.Sprintf("%s; %d of at most %d calls are under way", text, system.CallsInFlight, system.CallsLimit)
	case system.State == breakerOpen && system.NextTry != nil:
		return fmt.Sprintf("%s; it is tried again in %s", text, output.Duration(system.NextTry.Sub(e.At)))
	default:
		return text + "; it is being tried again"
	}
}
