package fakedirector

import (
	"net/http"
	"slices"
	"time"
)

// TokenOperation is the name under which the token endpoint is told and faults of it are ordered. Others are named as in the schema.
const TokenOperation = "token"

// Fault is something that goes wrong with a call.
type Fault struct {
	// Operation is the call that it befalls, any one if empty.
	Operation string
	// Code, if set, is the error_code of the answer; nothing is done then.
	Code ErrorCode
	// Status, if set, is the HTTP status of the answer; nothing is done then.
	Status int
	// Body, if set, is the answer; nothing is done then.
	Body string
	// Unsent breaks the connection before anything is done, Lost after everything was.
	Unsent, Lost bool
	// Delay is how long the call takes.
	Delay time.Duration
	// Times is how many calls it befalls, one if it is 0, all if it is less.
	Times int
}

// Order has calls go wrong. Faults take effect in the order in which they were ordered.
func (d *Director) Order(faults ...Fault) {
	d.mutex.Lock()
	defer d.mutex.Unlock()

	for _, fault := range faults {
		if fault.Times == 0 {
			fault.Times = 1
		}

		d.faults = append(d.faults, fault)
	}
}

// befall returns what goes wrong with a call of the operation, if anything.
func (d *Director) befall(operation string) Fault {
	d.mutex.Lock()
	defer d.mutex.Unlock()

	d.calls = append(d.calls, operation)

	for i := range d.faults {
		fault := &d.faults[i]
		if fault.Operation != "" && fault.Operation != operation {
			continue
		}

		befallen := *fault
		if fault.Times--; fault.Times == 0 {
			d.faults = slices.Delete(d.faults, i, i+1)
		}

		return befallen
	}

	return Fault{}
}

// begin has a fault take effect that keeps the work from being done. It reports whether the call is answered by it.
func (f Fault) begin(w http.ResponseWriter, request *http.Request) bool {
	if f.Delay > 0 {
		timer := time.NewTimer(f.Delay)
		defer timer.Stop()

		select {
		case <-timer.C:
		case <-request.Context().Done():
			panic(http.ErrAbortHandler)
		}
	}

	switch {
	case f.Unsent:
		panic(http.ErrAbortHandler) // net/http breaks the connection
	case f.Status != 0:
		http.Error(w, http.StatusText(f.Status), f.Status)
	case f.Body != "":
		_, _ = w.Write([]byte(f.Body))
	default:
		return false
	}

	return true
}
