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
	// requestsPerProcessor is the number of requests that keep a processor busy: while one of them waits for the database, the
	// processor works on the other one.
	requestsPerProcessor = 2
	// crowdedFor is how long Busy returns true after a request had to wait. Short requests, such as polls, overlap only for
	// fractions of a millisecond, so a count at a single moment usually finds few of them, even at full load.
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

// add counts a request. If there are now more requests than the processors can work on, it records the time.
func (l *Load) add() {
	if l.requests.Add(1) > int64(requestsPerProcessor*runtime.GOMAXPROCS(0)) {
		l.crowded.Store(time.Now().UnixNano())
	}
}

// Exclude calls wait, and does not count the request of the calling handler until wait returns. Handlers that wait for
// background work must use Exclude. Otherwise, their own requests would slow down the work that they wait for.
func (l *Load) Exclude(wait func() error) error {
	l.requests.Add(-1)
	defer l.requests.Add(1)

	return wait()
}

// Busy reports whether, at some time in the last 100 ms, there were more requests than the processors can work on, which means
// that some requests had to wait.
func (l *Load) Busy() bool {
	since := time.Now().UnixNano() - l.crowded.Load()

	return since >= 0 && since < int64(crowdedFor)
}
