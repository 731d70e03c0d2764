package fakedirector

import (
	"cmp"
	"fmt"
	"net/http"
	"slices"
	"time"
)

// TokenOperation is the name of the token endpoint in faults and calls. The other operations have the names of the schema.
const TokenOperation = "token"

// Fault is an injected failure of calls. The zero value is no failure. Of the fields that replace the response, the first one
// that is set wins, in the order Unsent, Status, Body, Code.
type Fault struct {
	// Operation is the operation that fails, every one if it is empty.
	Operation string
	// Code, if set, is the error_code of the answer. The operation is not executed.
	Code ErrorCode
	// Status, if set, is the HTTP status of the answer. The operation is not executed.
	Status int
	// Body, if set, is the answer. The operation is not executed.
	Body string
	// Unsent breaks the connection before the operation is executed, Lost after it.
	Unsent, Lost bool
	// Delay is the duration of the call.
	Delay time.Duration
	// Times is the number of calls that fail: one if it is 0, all if it is negative.
	Times int
}

// Inject makes calls fail. A call takes the first fault for its operation, in the order of the injection. A fault stays until it has
// been taken as often as Times says; there is no way to withdraw one.
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

// faultOf records a call of an operation and returns its fault, the zero value if there is none. It takes the fault, so of two
// concurrent calls only one gets a fault that is injected once.
func (d *Director) faultOf(operation string) Fault {
	d.mutex.Lock()
	defer d.mutex.Unlock()

	d.calls = append(d.calls, operation)

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

// answer applies a fault that prevents the execution of the operation. It reports whether it has answered the call. A broken
// connection is a panic with http.ErrAbortHandler, which net/http expects.
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
		http.Error(w, http.StatusText(f.Status), f.Status)
	case f.Body != "":
		_, _ = w.Write([]byte(f.Body))
	default:
		return false
	}

	return true
}

// ErrorCode is a code of Director, in extensions.error_code of an answer.
type ErrorCode int

// The codes of Director.
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

// String returns the name of the code, which Director sends in extensions.error. An unknown code has the name Error and its
// number.
func (c ErrorCode) String() string {
	names := map[ErrorCode]string{
		InternalError: "InternalError", UnknownError: "UnknownError", NotFound: "NotFound", NotUnique: "NotUnique",
		InvalidData: "InvalidData", InsufficientScopes: "InsufficientScopes", TenantRequired: "TenantRequired",
		TenantNotFound: "TenantNotFound", Unauthorized: "Unauthorized", InvalidOperation: "InvalidOperation",
	}
	return cmp.Or(names[c], fmt.Sprintf("Error%d", int(c)))
}

// refusal is an error with a code of Director, which the response contains. Errors without a code are those of GraphQL itself.
type refusal struct {
	code ErrorCode
	text string
}

// refuse returns an error with a code of Director.
func refuse(code ErrorCode, format string, args ...any) error {
	return &refusal{code: code, text: fmt.Sprintf(format, args...)}
}

// Error implements error.
func (r *refusal) Error() string { return r.text }
