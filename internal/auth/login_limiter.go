package auth

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/hashicorp/golang-lru/v2/simplelru"
	"k8s.io/utils/clock"
)

const (
	// firstDelay is the delay after the last allowed failure. Each further failure doubles the delay, up to maxDelay.
	firstDelay = time.Second
	maxDelay   = time.Minute
	// forgetAfter is the time without a further failure after which the earlier failures of a login no longer count.
	forgetAfter = 15 * time.Minute
)

// login identifies who tries to log in: a user name and the network of the client. Failures from one network do not delay logins
// from another, so an attacker cannot lock out a user in a different network. The name is hashed, because clients choose its
// length.
type login struct {
	name    [sha256.Size]byte
	network string
}

// failures contains the number of consecutive failed attempts of a login, and the earliest time of the next attempt.
type failures struct {
	count int
	last  time.Time
	next  time.Time
}

// loginLimiter delays password logins after failed attempts. It does not make requests wait: an attempt before the end of the
// delay is rejected without comparing the password, so the response does not reveal whether the password is correct. It is safe
// for concurrent use.
type loginLimiter struct {
	// allowed is the number of failures before the first delay.
	allowed int
	clock   clock.PassiveClock

	mutex sync.Mutex
	// recent contains the failures of the most recent logins, at most maxClients.
	recent *simplelru.LRU[login, failures]
}

// newLoginLimiter returns a limiter that allows the given number of failures before the first delay. If allowed is 0, it returns
// nil; a nil limiter delays nothing.
func newLoginLimiter(allowed int, clock clock.PassiveClock) (*loginLimiter, error) {
	switch {
	case allowed < 0:
		return nil, errors.New("must not be negative; 0 turns off delays")
	case allowed == 0:
		return nil, nil
	}

	recent, err := simplelru.NewLRU[login, failures](maxClients, nil)
	if err != nil {
		return nil, fmt.Errorf("creating the list of failed logins: %w", err)
	}

	return &loginLimiter{allowed: allowed, clock: clock, recent: recent}, nil
}

// loginOf returns the login of a request with a password, and false for any other request. Tokens and certificates cannot be
// guessed, so they are not limited.
func loginOf(r *http.Request) (login, bool) {
	name, _, sent := r.BasicAuth()

	return login{name: sha256.Sum256([]byte(name)), network: ClientNetwork(r.RemoteAddr)}, sent
}

// try calls authenticate, which reports whether the credentials were rejected, and records the result. If the login is delayed, try
// returns the time until the next attempt is allowed, and the caller must not reveal the result. A login can be delayed before
// authenticate is called, or by the failures of concurrent attempts: otherwise many attempts that begin at the same time could
// exceed the allowed failures.
func (l *loginLimiter) try(r *http.Request, authenticate func() (rejected bool)) (wait time.Duration) {
	who, limited := loginOf(r)
	if l == nil || !limited {
		authenticate()

		return 0
	}

	reserved, wait := l.begin(who)
	if wait > 0 {
		return wait
	}

	return l.end(who, reserved, authenticate())
}

// begin returns 0 if the login may be attempted, and otherwise the time until the next attempt is allowed. Once the allowed
// failures are used up, begin reserves the attempt at the end of a delay for one caller: it starts the next delay before the result is
// known.
func (l *loginLimiter) begin(who login) (reserved bool, wait time.Duration) {
	l.mutex.Lock()
	defer l.mutex.Unlock()

	now := l.clock.Now()

	found, known := l.recent.Get(who)
	if !known || found.count < l.allowed {
		return false, 0
	}

	if now.Sub(found.last) >= forgetAfter {
		l.recent.Remove(who)

		return false, 0
	}

	if wait = found.next.Sub(now); wait > 0 {
		return false, wait
	}

	found.next = now.Add(l.delay(found.count + 1))
	l.recent.Add(who, found)

	return true, 0
}

// end records the result of an attempt, unless other attempts have delayed the login meanwhile. It then returns the time until the
// next attempt is allowed. After a success, it forgets the failures of the login.
func (l *loginLimiter) end(who login, reserved, rejected bool) (wait time.Duration) {
	l.mutex.Lock()
	defer l.mutex.Unlock()

	now := l.clock.Now()
	found, _ := l.recent.Get(who)

	if wait = found.next.Sub(now); wait > 0 && !reserved {
		return wait
	}

	if !rejected {
		l.recent.Remove(who)

		return 0
	}

	if now.Sub(found.last) >= forgetAfter {
		found = failures{}
	}

	found.count, found.last = found.count+1, now
	if found.count >= l.allowed {
		found.next = now.Add(l.delay(found.count))
	}

	l.recent.Add(who, found)

	return 0
}

// delay returns the delay after count consecutive failures.
func (l *loginLimiter) delay(count int) time.Duration {
	delay := firstDelay
	for ; count > l.allowed && delay < maxDelay; count-- {
		delay *= 2
	}

	return min(delay, maxDelay)
}
