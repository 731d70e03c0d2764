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
	"github.com/environment-broker/environment-broker/internal/graphqlclient"
	"github.com/environment-broker/environment-broker/internal/upstream"
)

const (
	// renewEarly is how long before its expiry a token is replaced.
	renewEarly = 30 * time.Second
	// longestToken bounds the answer of the token endpoint, in bytes.
	longestToken = 1 << 20
)

// scopes are the permissions that the Provisioner needs in Director.
func scopes() []string { return []string{"runtime:read", "runtime:write"} }

// tokens caches the current access token, until shortly before its expiry or until Director rejects it. One request for a token runs at a
// time; concurrent callers wait for it.
type tokens struct {
	credentials Credentials
	http        *http.Client
	turn        chan struct{}
	current     *oauth2.Token
	// goodUntil is when the current token is replaced; zero if it does not expire.
	goodUntil time.Time
}

func newTokens(credentials Credentials, client *http.Client) *tokens {
	limited := *client
	limited.Transport = upstream.Bounded(longestToken)(client.Transport)

	return &tokens{credentials: credentials, http: &limited, turn: make(chan struct{}, 1)}
}

// get returns a valid token. The credentials are read for each new one, so renewed credentials need no restart.
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
		return "", denied(err, "the credentials for Director cannot be read")
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

// goodUntil returns a time shortly before the expiry of a new token. A token that lives no longer than renewEarly is used up to its end,
// or every call would request another.
func goodUntil(token *oauth2.Token) time.Time {
	if token.Expiry.IsZero() {
		return time.Time{}
	}

	return token.Expiry.Add(-min(renewEarly, time.Until(token.Expiry)/4))
}

// discard drops a token that Director rejects, or the current one if token is empty.
func (t *tokens) discard(refused string) {
	t.turn <- struct{}{}
	defer t.unlock()

	if t.current != nil && (refused == "" || t.current.AccessToken == refused) {
		t.current = nil
	}
}

func (t *tokens) lock(ctx context.Context) error {
	select {
	case t.turn <- struct{}{}:
		return nil
	case <-ctx.Done():
		return failure.Wrap(failure.Transient, ctx.Err(), "the token endpoint of Director did not answer in time").
			WithReason(failure.ReasonTimeout, failure.ComponentDirectorToken)
	}
}

func (t *tokens) unlock() { <-t.turn }

// refusedToken explains why there is no token. Addresses and answers stay out of its text: they may contain secrets.
func refusedToken(ctx context.Context, err error) error {
	if known, ok := errors.AsType[*failure.Error](err); ok { // rejected by the limit or the circuit breaker
		return known
	}

	answer, answered := errors.AsType[*oauth2.RetrieveError](err)

	switch {
	case errors.Is(err, context.DeadlineExceeded), ctx.Err() != nil:
		return failure.Wrap(failure.Transient, context.Cause(ctx), "the token endpoint of Director did not answer in time").
			WithReason(failure.ReasonTimeout, failure.ComponentDirectorToken)
	case answered && answer.Response.StatusCode < http.StatusInternalServerError:
		status := fmt.Errorf("HTTP status %d", answer.Response.StatusCode)

		return denied(status, "the token endpoint of Director rejects our credentials")
	case answered:
		return failure.New(failure.Transient, "the token endpoint of Director answered with HTTP status %d", answer.Response.StatusCode).
			WithReason(failure.ReasonHTTPStatus, failure.ComponentDirectorToken)
	}

	cause := errors.New(graphqlclient.Excerpt(graphqlclient.WithoutURL(err).Error()))

	return failure.Wrap(failure.Transient, cause, "the token endpoint of Director cannot be reached or returns no token").
		WithReason(failure.ReasonInternal, failure.ComponentDirectorToken)
}

// denied returns the error for invalid credentials. It is transient: operations retry until an operator has corrected them.
func denied(cause error, said string) error {
	return failure.Wrap(failure.Transient, cause, "%s: an operator must correct them, see APP_DIRECTOR_OAUTH_PATH and APP_OAUTH_CREDENTIALS_SECRET_NAME",
		said).WithReason("Unauthorized", failure.ComponentDirectorToken)
}
