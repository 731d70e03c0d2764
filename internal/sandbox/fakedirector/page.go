package fakedirector

import (
	"cmp"
	"fmt"
	"net/http"
	"slices"

	"github.com/environment-broker/environment-broker/internal/sandbox/simulator"
)

// keptCalls is the maximum number of calls that the page at /simulators shows.
const keptCalls = 50

// System presents a Director on the page that lists the simulated systems. It implements simulator.System.
type System struct{ *Director }

// Name implements simulator.System.
func (System) Name() string { return "director" }

// Holds describes the registered runtimes, without their one-time tokens.
func (s System) Holds() []string {
	var lines []string

	for _, runtime := range s.Runtimes() {
		lines = append(lines, fmt.Sprintf("runtime %s (%s) of tenant %s: %s, one-time tokens: %d",
			runtime.ID, runtime.Name, runtime.Tenant, runtime.Condition, len(runtime.OneTimeTokens)))
	}

	return lines
}

// Calls implements simulator.System.
func (s System) Calls() []simulator.Call {
	s.mutex.Lock()
	defer s.mutex.Unlock()

	return slices.Clone(s.calls[max(0, len(s.calls)-keptCalls):])
}

// Faults implements simulator.System. It shows a fault's Director error code in the Body field.
func (s System) Faults() []simulator.Fault {
	s.mutex.Lock()
	defer s.mutex.Unlock()

	faults := make([]simulator.Fault, 0, len(s.faults))

	for _, fault := range s.faults {
		shown := simulator.Fault{
			Operation: fault.Operation, Status: fault.Status, RetryAfter: fault.RetryAfter, Body: fault.Body, Unsent: fault.Unsent,
			Lost: fault.Lost, Delay: fault.Delay, Times: fault.Times,
		}
		if fault.Code != 0 {
			shown.Body = cmp.Or(shown.Body, fault.Code.String())
		}

		faults = append(faults, shown)
	}

	return faults
}

// Inject implements simulator.System. A simulator.Fault cannot contain a Director error code, so the injected faults have none.
func (s System) Inject(faults ...simulator.Fault) {
	for _, fault := range faults {
		s.Director.Inject(Fault{
			Operation: fault.Operation, Status: fault.Status, RetryAfter: fault.RetryAfter, Body: fault.Body, Unsent: fault.Unsent,
			Lost: fault.Lost, Delay: fault.Delay, Times: fault.Times,
		})
	}
}

// Reset implements simulator.System.
func (s System) Reset() {
	s.mutex.Lock()
	defer s.mutex.Unlock()

	s.faults = nil
}

// recording records the status of a response. Until the response starts, the status is 0, which stands for a broken connection.
type recording struct {
	http.ResponseWriter

	status int
}

// WriteHeader implements http.ResponseWriter.
func (r *recording) WriteHeader(status int) {
	r.status = status
	r.ResponseWriter.WriteHeader(status)
}

// Write implements http.ResponseWriter.
func (r *recording) Write(part []byte) (int, error) {
	r.status = cmp.Or(r.status, http.StatusOK)

	return r.ResponseWriter.Write(part) //nolint:wrapcheck // the error of net/http
}
