package fakedirector

import (
	"cmp"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/environment-broker/environment-broker/internal/sandbox/simulator"
)

// TokenOperation is the name of the token endpoint in faults and calls. All other operations have the names in the schema.
const TokenOperation = "token"

// Fault is an injected failure. The zero value injects nothing. The fields Unsent, Status, Body and Code replace the response; if
// more than one is set, the first in this order applies.
type Fault struct {
	// Operation is the name of the operation to fail. If it is empty, every operation fails.
	Operation string
	// Code, if set, is the error_code of the response. The operation is not executed.
	Code ErrorCode
	// Status, if set, is the HTTP status of the response. The operation is not executed. RetryAfter is the value of its Retry-After
	// header, in seconds.
	Status, RetryAfter int
	// Body, if set, is the body of the response. The operation is not executed.
	Body string
	// Unsent breaks the connection before the operation is executed; Lost breaks it afterwards.
	Unsent, Lost bool
	// Delay postpones the call, whether or not the call then fails.
	Delay time.Duration
	// Times is the number of calls that fail. 0 means one; a negative number means all.
	Times int
}

// Inject makes calls fail. Each call uses the first injected fault for its operation. A fault applies to as many calls as its
// Times field says. System.Reset removes all faults; a single fault cannot be removed.
func (d *Director) Inject(faults ...Fault) {
	d.mutex.Lock()
	defer d.mutex.Unlock()

	for _, fault := range faults {
		if fault.Times == 0 {
			fault.Times = 1
		}

		d.faults = append(d.faults, fault)
	}
}

// begin records a call. It returns the fault for the call, or the zero value if there is none. The caller must write the response
// to recorded and then call done, which records the response status. begin consumes the fault, so a fault that is injected once
// affects only one of two concurrent calls.
func (d *Director) begin(operation string, w http.ResponseWriter, request *http.Request) (fault Fault, recorded http.ResponseWriter, done func()) {
	d.mutex.Lock()
	defer d.mutex.Unlock()

	response, number := &recording{ResponseWriter: w}, len(d.calls)
	d.calls = append(d.calls, simulator.Call{At: d.options.Now(), Operation: operation, Method: request.Method, Path: request.URL.Path})

	done = func() {
		d.mutex.Lock()
		defer d.mutex.Unlock()

		d.calls[number].Status = response.status
	}

	return d.take(operation), response, done
}

// take returns the fault for a call, and decrements its Times. The caller must hold the mutex.
func (d *Director) take(operation string) Fault {
	for i := range d.faults {
		fault := &d.faults[i]
		if fault.Operation != "" && fault.Operation != operation {
			continue
		}

		injected := *fault
		if fault.Times--; fault.Times == 0 {
			d.faults = slices.Delete(d.faults, i, i+1)
		}

		return injected
	}

	return Fault{}
}

// answer waits for the fault's delay. If the fault sets Unsent, answer then panics with http.ErrAbortHandler, which makes
// net/http close the connection. If it sets Status or Body, answer writes the response and returns true. Otherwise, it returns
// false.
func (f Fault) answer(w http.ResponseWriter, request *http.Request) bool {
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
		panic(http.ErrAbortHandler) // net/http closes the connection
	case f.Status != 0:
		if f.RetryAfter > 0 {
			w.Header().Set("Retry-After", strconv.Itoa(f.RetryAfter))
		}

		http.Error(w, http.StatusText(f.Status), f.Status)
	case f.Body != "":
		_, _ = w.Write([]byte(f.Body))
	default:
		return false
	}

	return true
}

// ErrorCode is a Director error code, sent in extensions.error_code of a response.
type ErrorCode int

// Error codes of Director.
const (
	InternalError      ErrorCode = 10
	UnknownError       ErrorCode = 11
	NotFound           ErrorCode = 20
	NotUnique          ErrorCode = 21
	InvalidData        ErrorCode = 22
	InsufficientScopes ErrorCode = 23
	TenantRequired     ErrorCode = 24
	TenantNotFound     ErrorCode = 25
	Unauthorized       ErrorCode = 26
	InvalidOperation   ErrorCode = 27
)

// String returns the name of the code, which Director sends in extensions.error. The name of an unknown code is "Error" followed
// by its number.
func (c ErrorCode) String() string {
	names := map[ErrorCode]string{
		InternalError: "InternalError", UnknownError: "UnknownError", NotFound: "NotFound", NotUnique: "NotUnique",
		InvalidData: "InvalidData", InsufficientScopes: "InsufficientScopes", TenantRequired: "TenantRequired",
		TenantNotFound: "TenantNotFound", Unauthorized: "Unauthorized", InvalidOperation: "InvalidOperation",
	}
	return cmp.Or(names[c], fmt.Sprintf("Error%d", int(c)))
}

// refusal is an error with a Director code. Errors without a code come from GraphQL itself.
type refusal struct {
	code ErrorCode
	text string
}

// refuse returns an error with a Director code and a formatted message.
func refuse(code ErrorCode, format string, args ...any) error {
	return &refusal{code: code, text: fmt.Sprintf(format, args...)}
}

// Error returns the message of the response.
func (r *refusal) Error() string { return r.text }
