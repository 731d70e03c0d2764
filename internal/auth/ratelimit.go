// Package auth bounds how many requests each client sends.
package auth

import (
	"errors"
	"fmt"
	"net/netip"
	"sync"
	"time"

	"github.com/hashicorp/golang-lru/v2/simplelru"
	"golang.org/x/time/rate"
	"k8s.io/utils/clock"
)

// clients bounds how many are remembered. The one that was silent for longest is forgotten first: its bucket was full again, or a
// stranger plays many.
const clients = 10_000

// Limiter has a bucket of requests for each client.
type Limiter struct {
	perSecond rate.Limit
	burst     int
	clock     clock.PassiveClock

	mutex   sync.Mutex
	buckets *simplelru.LRU[string, *rate.Limiter]
}

// NewLimiter returns a limiter: so many requests a second, and so many at once. Without a rate it returns nil, which limits nothing.
func NewLimiter(perSecond float64, burst int, clock clock.PassiveClock) (*Limiter, error) {
	switch {
	case perSecond < 0:
		return nil, errors.New("the rate cannot be negative, 0 is no limit")
	case perSecond == 0:
		return nil, nil
	case burst < 1:
		return nil, errors.New("at least one request at once has to be allowed")
	}

	buckets, err := simplelru.NewLRU[string, *rate.Limiter](clients, nil)
	if err != nil {
		return nil, fmt.Errorf("keeping buckets: %w", err)
	}

	return &Limiter{perSecond: rate.Limit(perSecond), burst: burst, clock: clock, buckets: buckets}, nil
}

// Take takes a request out of the client's bucket. Where that is empty it takes nothing, and returns when there will be one.
func (l *Limiter) Take(client string) (wait time.Duration) {
	if l == nil {
		return 0
	}

	l.mutex.Lock()
	defer l.mutex.Unlock()

	bucket, known := l.buckets.Get(client)
	if !known {
		bucket = rate.NewLimiter(l.perSecond, l.burst)
		l.buckets.Add(client, bucket)
	}

	now := l.clock.Now()
	taken := bucket.ReserveN(now, 1)

	if wait = taken.DelayFrom(now); wait > 0 {
		taken.CancelAt(now)
	}

	return wait
}

// Network names where a request comes from, by the address of its connection: an address of IPv4, or the 64 bits of IPv6 that one site
// has for itself.
func Network(remote string) string {
	const site = 64

	place, err := netip.ParseAddrPort(remote)
	if err != nil {
		return "elsewhere"
	}

	address := place.Addr().Unmap().WithZone("")
	if address.Is4() {
		return address.String()
	}

	prefix, err := address.Prefix(site)
	if err != nil {
		return address.String()
	}

	return prefix.String()
}
