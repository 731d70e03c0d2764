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

// maxClients bounds the number of buckets in memory. The Limiter evicts the bucket of the client that has been idle for the
// longest time. By then, the bucket is usually full again, so the eviction has no effect, unless an attacker uses more than
// maxClients addresses.
const maxClients = 10_000

// Limiter has a token bucket for each client. A bucket starts with as many tokens as the burst, and gains tokens at the
// configured rate. Each replica has a separate Limiter, so the limit applies per replica. A Limiter is safe for concurrent use.
type Limiter struct {
	perSecond rate.Limit
	burst     int
	clock     clock.PassiveClock

	mutex   sync.Mutex
	buckets *simplelru.LRU[string, *rate.Limiter]
}

// NewLimiter returns a limiter with the given rate in requests per second and the given burst in requests. If the rate is 0,
// NewLimiter returns nil, which limits nothing.
func NewLimiter(perSecond float64, burst int, clock clock.PassiveClock) (*Limiter, error) {
	switch {
	case perSecond < 0:
		return nil, errors.New("the rate must not be negative; 0 means no limit")
	case perSecond == 0:
		return nil, nil
	case burst < 1:
		return nil, errors.New("the burst must be at least 1")
	}

	buckets, err := simplelru.NewLRU[string, *rate.Limiter](maxClients, nil)
	if err != nil {
		return nil, fmt.Errorf("creating the buckets: %w", err)
	}

	return &Limiter{perSecond: rate.Limit(perSecond), burst: burst, clock: clock, buckets: buckets}, nil
}

// Take removes a token from the client's bucket and returns 0. If the bucket is empty, Take removes nothing and returns the time until the
// next token.
func (l *Limiter) Take(client string) (wait time.Duration) {
	if l == nil {
		return 0
	}

	l.mutex.Lock()
	defer l.mutex.Unlock()

	bucket, found := l.buckets.Get(client)
	if !found {
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

// ClientNetwork returns the network of a remote address (host:port). Unauthenticated clients of one network share a rate limit.
// An IPv4 network is a single address. An IPv6 network is a /64, because one host can usually use every address of its subnet. For
// invalid addresses, ClientNetwork returns "unknown".
func ClientNetwork(remote string) string {
	const subnetBits = 64

	place, err := netip.ParseAddrPort(remote)
	if err != nil {
		return "unknown"
	}

	address := place.Addr().Unmap().WithZone("")
	if address.Is4() {
		return address.String()
	}

	prefix, err := address.Prefix(subnetBits)
	if err != nil {
		return address.String()
	}

	return prefix.String()
}
