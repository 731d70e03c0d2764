package tenant

import (
	"net/http"
	"sync"
	"time"
)

const (
	// shortest and longest are the bounds, in seconds, of the interval at which an instance's page refreshes itself while an
	// operation runs.
	shortest, longest = 2, 60
	// refreshBudget is the number of page refreshes that a replica serves per second. With more open pages, each page refreshes less
	// often.
	refreshBudget = 20
	// window is the time over which refreshes are counted.
	window = 10 * time.Second
)

// pace chooses how often open pages refresh themselves, so that the replica stays within refreshBudget. It is safe for concurrent
// use.
type pace struct {
	mutex sync.Mutex
	// began is the start of the current window, and count is the number of refreshes in it.
	began time.Time
	count int
	// seconds is the current interval, or 0 before the first window has ended.
	seconds int
}

// interval returns the time until the next refresh of a page, in seconds. If the request is an automatic refresh, interval counts
// it.
func (p *pace) interval(r *http.Request, now time.Time) int {
	p.mutex.Lock()
	defer p.mutex.Unlock()

	current := max(p.seconds, shortest)

	if passed := now.Sub(p.began); passed >= window {
		// Each open page sends one request per interval, so the number of requests shows how many pages are open.
		pages := float64(p.count) / passed.Seconds() * float64(current)
		p.seconds = min(max(int(pages/refreshBudget), shortest), longest)
		p.began, p.count = now, 0
	}

	if r.Header.Get("X-Console-Live") != "" {
		p.count++
	}

	return max(p.seconds, shortest)
}
