package director

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"golang.org/x/oauth2"
	"golang.org/x/oauth2/clientcredentials"

	"github.com/environment-broker/environment-broker/internal/failure"
	"github.com/environment-broker/environment-broker/internal/upstream"
	"github.com/environment-broker/environment-broker/internal/upstream/graphqlclient"
)

const (
	// renewEarly is how long before its expiry a token is replaced, so that it does not expire on its way to Director.
	renewEarly = 30 * time.Second
	// longestToken bounds the response of the token endpoint, in bytes.
	longestToken = 1 << 20
)

// scopes returns the OAuth scopes that the Provisioner needs in Director.
func scopes() []string { return []string{"runtime:read", "runtime:write"} }

// tokens caches the current access token until shortly before its expiry, or until Director rejects it. Only one request for a
// token runs at a time: concurrent callers wait for it and then use the new token.
type tokens struct {
	credentials Credentials
	http        *http.Client
	// turn is a lock with a cancelable wait. It protects the fields below and is held during a token request.
	turn    chan struct{}
	current *oauth2.Token
	// goodUntil is when the current token is replaced, or zero for a token that does not expire.
	goodUntil time.Time
}

// newTokens returns an empty cache. It limits the size of responses, which the OAuth library does not.
func newTokens(credentials Credentials, client *http.Client) *tokens {
	limited := *client
	limited.Transport = upstream.Bounded(longestToken)(client.Transport)

	return &tokens{credentials: credentials, http: &limited, turn: make(chan struct{}, 1)}
}

// get returns the current access token, or requests a new one.
func (t *tokens) get(ctx context.Context) (string, error) {
	if err := t.lock(ctx); err != nil {
		return "", err
	}
	defer t.unlock()

	if t.current != nil && (t.goodUntil.IsZero() || time.Now().Before(t.goodUntil)) {
		return t.current.AccessToken, nil
	}

	t.current = nil

	credentials, err := t.credentials.Read(ctx)
	if err != nil {
		return "", denied(err, "reading the credentials for Director failed")
	}

	config := clientcredentials.Config{
		ClientID: credentials.ClientID, ClientSecret: credentials.ClientSecret.Reveal(), TokenURL: credentials.TokensEndpoint,
		Scopes: scopes(), AuthStyle: oauth2.AuthStyleInHeader,
	}

	token, err := config.Token(context.WithValue(ctx, oauth2.HTTPClient, t.http))
	if err != nil {
		return "", refusedToken(ctx, err)
	}

	t.current, t.goodUntil = token, goodUntil(token)

	return token.AccessToken, nil
}

// goodUntil returns the time at which the token must be replaced. This is renewEarly before its expiry, but not before three
// quarters of its lifetime have passed: otherwise every call would replace a short-lived token.
func goodUntil(token *oauth2.Token) time.Time {
	if token.Expiry.IsZero() {
		return time.Time{}
	}

	return token.Expiry.Add(-min(renewEarly, time.Until(token.Expiry)/4))
}

// discard removes the cached token if it equals rejected, the token that Director has rejected. A newer token from a concurrent
// call stays in the cache. If rejected is empty, discard removes any token.
func (t *tokens) discard(rejected string) {
	t.turn <- struct{}{}
	defer t.unlock()

	if t.current != nil && (rejected == "" || t.current.AccessToken == rejected) {
		t.current = nil
	}
}

// lock waits for the caller's turn, or fails when the context ends. A mutex would make a caller wait beyond its timeout.
func (t *tokens) lock(ctx context.Context) error {
	select {
	case t.turn <- struct{}{}:
		return nil
	case <-ctx.Done():
		return failure.Wrap(failure.Transient, ctx.Err(), "the token endpoint of Director did not respond in time").
			WithReason(failure.ReasonTimeout, failure.ComponentDirectorToken)
	}
}

func (t *tokens) unlock() { <-t.turn }

// refusedToken turns an error of the token request into a failure.Error. Its text contains neither the address nor the response,
// which may contain secrets.
func refusedToken(ctx context.Context, err error) error {
	if typed, ok := errors.AsType[*failure.Error](err); ok { // The concurrency limit or the circuit breaker rejects the request.
		return typed
	}

	answer, answered := errors.AsType[*oauth2.RetrieveError](err)

	switch {
	case errors.Is(err, context.DeadlineExceeded), ctx.Err() != nil:
		return failure.Wrap(failure.Transient, context.Cause(ctx), "the token endpoint of Director did not respond in time").
			WithReason(failure.ReasonTimeout, failure.ComponentDirectorToken)
	case answered && answer.Response.StatusCode < http.StatusInternalServerError:
		status := fmt.Errorf("HTTP status %d", answer.Response.StatusCode)

		return denied(status, "the token endpoint of Director rejects our credentials")
	case answered:
		return failure.New(failure.Transient, "the token endpoint of Director responded with HTTP status %d", answer.Response.StatusCode).
			WithReason(failure.ReasonHTTPStatus, failure.ComponentDirectorToken)
	}

	cause := errors.New(graphqlclient.Excerpt(graphqlclient.WithoutURL(err).Error()))

	return failure.Wrap(failure.Transient, cause, "the token endpoint of Director cannot be reached or returns no token").
		WithReason(failure.ReasonInternal, failure.ComponentDirectorToken)
}

// denied returns the error for missing, malformed or rejected credentials. It is transient: operations retry until an operator
// corrects the credentials.
func denied(cause error, said string) error {
	return failure.Wrap(failure.Transient, cause, "%s: an operator must correct them, see APP_DIRECTOR_OAUTH_PATH and APP_OAUTH_CREDENTIALS_SECRET_NAME",
		said).WithReason("Unauthorized", failure.ComponentDirectorToken)
}
