package httpserver

import (
	"net/http"
	"runtime"
	"sync/atomic"
	"time"
)

// Load counts the requests that a service is working on, so that background work can leave the processors to them. The zero
// value is ready to use. It is safe for concurrent use.
type Load struct {
	requests atomic.Int64
	// crowded is the last time at which a request had to wait for a processor, as Unix time in nanoseconds.
	crowded atomic.Int64
}

const (
	// requestsPerProcessor is the number of requests that keep a processor busy: while one request waits for the database, the
	// processor works on the other.
	requestsPerProcessor = 2
	// crowdedFor is how long a service stays busy after a request had to wait. Short requests, such as polls, overlap only for
	// fractions of a millisecond, so that a single count usually finds few of them even at full load.
	crowdedFor = 100 * time.Millisecond
)

// Count is a middleware that counts each request until its response is written.
func (l *Load) Count(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		l.add()
		defer l.requests.Add(-1)

		next.ServeHTTP(w, r)
	})
}

// add counts a request, and records the time if there are more requests than the processors can work on.
func (l *Load) add() {
	if l.requests.Add(1) > int64(requestsPerProcessor*runtime.GOMAXPROCS(0)) {
		l.crowded.Store(time.Now().UnixNano())
	}
}

// Exclude calls wait on behalf of a counted request, which does not count while it waits. Handlers that wait for background work must use
// it, because they would otherwise slow down the work that they wait for.
func (l *Load) Exclude(wait func() error) error {
	l.requests.Add(-1)
	defer l.requests.Add(1)

	return wait()
}

// Busy reports whether, at some time in the last 100 ms, there were more requests than the processors can work on, so that some
// of them had to wait.
func (l *Load) Busy() bool {
	since := time.Now().UnixNano() - l.crowded.Load()

	return since >= 0 && since < int64(crowdedFor)
}
