package upstream

import (
	"context"
	"time"
)

// renewEarly is how long before its expiry a token is replaced, so that it does not expire in transit.
const renewEarly = 30 * time.Second

// Token is an access token. A zero Expiry means that it does not expire.
type Token struct {
	Value  string
	Expiry time.Time
}

// Tokens caches the current access token of an upstream until shortly before its expiry, or until the upstream rejects it. Only
// one request for a token runs at a time: concurrent callers wait for it and then use the new token. Tokens is safe for
// concurrent use.
type Tokens struct {
	request func(ctx context.Context) (Token, error)
	late    func(ctx context.Context) error
	// turn is a lock with a cancelable wait. It protects the fields below and is held during a token request. A mutex would make a
	// caller wait beyond its timeout.
	turn    chan struct{}
	current Token
	// goodUntil is the time at which the current token is replaced, or zero for a token that does not expire.
	goodUntil time.Time
}

// NewTokens returns an empty cache. request fetches a token. If a caller's context ends while another caller is requesting a
// token, Get returns the result of late.
func NewTokens(request func(ctx context.Context) (Token, error), late func(ctx context.Context) error) *Tokens {
	return &Tokens{request: request, late: late, turn: make(chan struct{}, 1)}
}

// Get returns the cached token. If there is none, or if it is about to expire, Get requests a new one.
func (t *Tokens) Get(ctx context.Context) (string, error) {
	select {
	case t.turn <- struct{}{}:
	case <-ctx.Done():
		return "", t.late(ctx)
	}
	defer t.unlock()

	if t.current.Value != "" && (t.goodUntil.IsZero() || time.Now().Before(t.goodUntil)) {
		return t.current.Value, nil
	}

	t.current = Token{}

	token, err := t.request(ctx)
	if err != nil {
		return "", err
	}

	t.current, t.goodUntil = token, token.goodUntil()

	return token.Value, nil
}

// goodUntil returns the time at which the token must be replaced. This is renewEarly before its expiry, but not before three
// quarters of its lifetime have passed: otherwise every call would replace a short-lived token.
func (t Token) goodUntil() time.Time {
	if t.Expiry.IsZero() {
		return time.Time{}
	}

	return t.Expiry.Add(-min(renewEarly, time.Until(t.Expiry)/4))
}

// Discard removes the cached token if it equals rejected, the token that the upstream has rejected. A newer token that a
// concurrent call has requested stays in the cache. If rejected is empty, Discard removes any token. While another caller requests a
// token, Discard waits. If its context ends during the wait, it removes nothing: the requested token replaces the rejected one.
func (t *Tokens) Discard(ctx context.Context, rejected string) {
	select {
	case t.turn <- struct{}{}:
	case <-ctx.Done():
		return
	}
	defer t.unlock()

	if rejected == "" || t.current.Value == rejected {
		t.current = Token{}
	}
}

func (t *Tokens) unlock() { <-t.turn }
