package httpserver

import (
	"net/http"
	"runtime"
	"sync/atomic"
)

// Load counts the requests that a service is working on, so that background work can leave the processors to them. The zero
// value is ready to use. It is safe for concurrent use.
type Load struct{ requests atomic.Int64 }

// Count is a middleware that counts each request until its response is written.
func (l *Load) Count(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		l.requests.Add(1)
		defer l.requests.Add(-1)

		next.ServeHTTP(w, r)
	})
}

// Exclude calls wait for a counted request, and does not count the request meanwhile. Handlers that wait for background work
// must use it, because they would otherwise slow down the work that they wait for.
func (l *Load) Exclude(wait func() error) error {
	l.requests.Add(-1)
	defer l.requests.Add(1)

	return wait()
}

// requestsPerProcessor is the number of requests that keep a processor busy: while one request waits for the database, the
// processor works on the other.
const requestsPerProcessor = 2

// Busy reports whether there are more requests than the processors can work on, so that some of them wait.
func (l *Load) Busy() bool {
	return l.requests.Load() > int64(requestsPerProcessor*runtime.GOMAXPROCS(0))
}
