package simulator

import (
	"cmp"
	"net/http"
	"slices"
	"time"
)

// Fault is an injected failure. The zero value injects nothing. Of Unsent, Status and Body, the first one that is set replaces
// the response, and the call is not executed.
type Fault struct {
	// Operation is the name of the operation to fail. If it is empty, every operation fails.
	Operation string `json:"operation,omitempty"`
	// Status is the HTTP status of the response. RetryAfter is the value of its Retry-After header, in seconds.
	Status     int `json:"status,omitempty"`
	RetryAfter int `json:"retryAfter,omitempty"`
	// Body is the body of the response. With Body alone, the status is 200. With Status alone, the body is a JSON object.
	Body string `json:"body,omitempty"`
	// Unsent breaks the connection before the call is executed; Lost breaks it afterwards.
	Unsent bool `json:"unsent,omitempty"`
	Lost   bool `json:"lost,omitempty"`
	// Delay postpones the call, whether or not the call then fails.
	Delay time.Duration `json:"delay,omitempty"`
	// Times is the number of calls that fail. 0 means one; a negative number means all.
	Times int `json:"times,omitempty"`
}

// Inject makes calls fail. Each call uses the first fault for its operation.
func (b *Base) Inject(faults ...Fault) {
	b.mutex.Lock()
	defer b.mutex.Unlock()

	for _, fault := range faults {
		fault.Times = cmp.Or(fault.Times, 1)
		b.faults = append(b.faults, fault)
	}
}

// Reset removes all faults. It keeps the recorded calls.
func (b *Base) Reset() {
	b.mutex.Lock()
	defer b.mutex.Unlock()

	b.faults = nil
}

// Faults returns the faults that still apply to calls.
func (b *Base) Faults() []Fault {
	b.mutex.Lock()
	defer b.mutex.Unlock()

	return slices.Clone(b.faults)
}

// take returns the fault for a call, and decrements its Times.
func (b *Base) take(operation string) Fault {
	b.mutex.Lock()
	defer b.mutex.Unlock()

	for i := range b.faults {
		fault := &b.faults[i]
		if fault.Operation != "" && fault.Operation != operation {
			continue
		}

		injected := *fault
		if fault.Times--; fault.Times == 0 {
			b.faults = slices.Delete(b.faults, i, i+1)
		}

		return injected
	}

	return Fault{}
}

// wait waits for the fault's delay. It returns false if the client disconnects in the meantime.
func (f Fault) wait(r *http.Request) bool {
	if f.Delay <= 0 {
		return true
	}

	timer := time.NewTimer(f.Delay)
	defer timer.Stop()

	select {
	case <-timer.C:
		return true
	case <-r.Context().Done():
		return false
	}
}
