package console

import (
	"net/http"
	"sync"
)

// maxShared is the maximum number of entries in shared.results.
const maxShared = 100

// shared keeps the results of list queries, so that many pages that refresh after the same event cause only one query. A result
// is valid until the next event. shared is safe for concurrent use.
type shared[Value any] struct {
	mutex   sync.Mutex
	results map[string]*sharedResult[Value]
}

// sharedResult is the result of a list query. position is the position of the newest event before the query.
type sharedResult[Value any] struct {
	mutex    sync.Mutex
	value    Value
	position int64
	valid    bool
}

// get returns the result of read, or an earlier one with the same key if there has been no event since. Errors are not kept. Only
// automatic refreshes of a page share results. A user who reloads a page sees the newest state.
func (s *shared[Value]) get(r *http.Request, key string, position func() int64, read func() (Value, error)) (Value, error) {
	if r.Header.Get(liveHeader) == "" || position == nil {
		return read()
	}

	result := s.of(key)

	// Requests with the same key wait until the first one has its result. The wait is bounded, because the first request has a
	// time limit too.
	result.mutex.Lock()
	defer result.mutex.Unlock()

	// An event during the read may be missing from the result. The result therefore gets the position from before the read.
	at := position()
	if result.valid && result.position == at {
		return result.value, nil
	}

	value, err := read()
	result.value, result.position, result.valid = value, at, err == nil

	return value, err
}

// of returns the result for the key, and adds it if it is missing. If there would then be more than maxShared results, it first
// drops all results.
func (s *shared[Value]) of(key string) *sharedResult[Value] {
	s.mutex.Lock()
	defer s.mutex.Unlock()

	if s.results == nil || len(s.results) >= maxShared && s.results[key] == nil {
		s.results = map[string]*sharedResult[Value]{}
	}

	if s.results[key] == nil {
		s.results[key] = &sharedResult[Value]{}
	}

	return s.results[key]
}
