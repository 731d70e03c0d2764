package simulator

import (
	"bytes"
	"cmp"
	"io"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"sync"
	"time"
)

const (
	// keptCalls is the number of calls that a Base remembers.
	keptCalls = 50
	// maxBody is the maximum size of a request body, in bytes.
	maxBody = 1 << 20
)

// Call is a call that a system has received.
type Call struct {
	At        time.Time
	Operation string
	Method    string
	Path      string
	// Status is 0 if the connection was broken.
	Status int
}

// Base serves the calls of a system, injects faults into them and records them. It is safe for concurrent use.
type Base struct {
	// Mux contains the routes of the system. Their handlers come from Handle, Protected and Tokens.
	Mux *http.ServeMux

	name string

	mutex  sync.Mutex
	faults []Fault
	calls  []Call
	tokens map[string]bool
	issued int
}

// NewBase returns a Base for the named system, such as edp.
func NewBase(name string) *Base {
	return &Base{name: name, Mux: http.NewServeMux(), tokens: map[string]bool{}}
}

// Name returns the name of the system.
func (b *Base) Name() string { return b.name }

// ServeHTTP implements http.Handler.
func (b *Base) ServeHTTP(w http.ResponseWriter, r *http.Request) { b.Mux.ServeHTTP(w, r) }

// Calls returns the latest calls, at most keptCalls, the oldest first.
func (b *Base) Calls() []Call {
	b.mutex.Lock()
	defer b.mutex.Unlock()

	return slices.Clone(b.calls)
}

// Operations returns the operation names of the latest calls, except requests for tokens.
func (b *Base) Operations() []string {
	var names []string

	for _, call := range b.Calls() {
		if call.Operation != TokenOperation {
			names = append(names, call.Operation)
		}
	}

	return names
}

// Handle returns a handler for an operation. The handler records each call and applies the first fault for the operation, if
// there is one. execute runs while the Base is locked, so it may access the system's state, but must not call methods of the
// Base.
func (b *Base) Handle(operation string, execute http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if r.Body == nil { // only if a test calls the handler without a server
			r.Body = http.NoBody
		}

		// Read the body first: until then, net/http does not notice that the client has disconnected.
		body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
		if err != nil {
			http.Error(w, "the body cannot be read", http.StatusBadRequest)

			return
		}

		r.Body = io.NopCloser(bytes.NewReader(body))
		fault := b.take(operation)
		recorded := &response{header: http.Header{}}

		switch {
		case !fault.wait(r), fault.Unsent:
		case fault.Status != 0:
			if fault.RetryAfter > 0 {
				recorded.Header().Set("Retry-After", strconv.Itoa(fault.RetryAfter))
			}

			if fault.Body == "" {
				WriteJSON(recorded, fault.Status, map[string]string{"error": http.StatusText(fault.Status)})
			} else {
				recorded.WriteHeader(fault.Status)
				_, _ = recorded.Write([]byte(fault.Body))
			}
		case fault.Body != "":
			_, _ = recorded.Write([]byte(fault.Body))
		default:
			b.mutex.Lock()
			execute(recorded, r)
			b.mutex.Unlock()

			if fault.Lost {
				recorded.status = 0
			} else if recorded.status == 0 {
				recorded.status = http.StatusOK
			}
		}

		b.record(Call{At: time.Now(), Operation: operation, Method: r.Method, Path: r.URL.Path, Status: recorded.status})

		if recorded.status == 0 {
			panic(http.ErrAbortHandler) // net/http closes the connection
		}

		recorded.send(w)
	}
}

// Locked calls read while the Base is locked. The lock also guards the state of the system that embeds the Base.
func (b *Base) Locked(read func()) {
	b.mutex.Lock()
	defer b.mutex.Unlock()

	read()
}

func (b *Base) record(call Call) {
	b.mutex.Lock()
	defer b.mutex.Unlock()

	b.calls = append(b.calls, call)
	if len(b.calls) > keptCalls {
		b.calls = slices.Delete(b.calls, 0, len(b.calls)-keptCalls)
	}
}

// response buffers a response, because nothing must be sent if the fault breaks the connection.
type response struct {
	header http.Header
	status int
	body   bytes.Buffer
}

// Header implements http.ResponseWriter.
func (r *response) Header() http.Header { return r.header }

// WriteHeader implements http.ResponseWriter.
func (r *response) WriteHeader(status int) { r.status = status }

// Write implements http.ResponseWriter.
func (r *response) Write(part []byte) (int, error) {
	r.status = cmp.Or(r.status, http.StatusOK)

	return r.body.Write(part) //nolint:wrapcheck // never fails
}

func (r *response) send(w http.ResponseWriter) {
	maps.Copy(w.Header(), r.header)
	w.WriteHeader(r.status)
	_, _ = w.Write(r.body.Bytes())
}
