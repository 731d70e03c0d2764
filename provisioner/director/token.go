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
)

const (
	// renewEarly is how long before its end a token is not used any more.
	renewEarly = 30 * time.Second
	// longestToken bounds the answer of the token endpoint, in bytes.
	longestToken = 1 << 20
)

// scopes are the rights that the Provisioner needs in Director.
func scopes() []string { return []string{"runtime:read", "runtime:write"} }

// tokens keeps the access token of the moment. One is asked for at a time; whoever needs it meanwhile waits for that.
type tokens struct {
	credentials Credentials
	http        *http.Client
	turn        chan struct{}
	current     *oauth2.Token
	// goodUntil is when the present token is exchanged; zero for one that has no end.
	goodUntil time.Time
}

func newTokens(credentials Credentials, client *http.Client) *tokens {
	limited := *client
	limited.Transport = upstream.Bounded(longestToken)(client.Transport)

	return &tokens{credentials: credentials, http: &limited, turn: make(chan struct{}, 1)}
}

// get returns a token that is good for a while.
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

// goodUntil is somewhat before the end of a token that was just given. Those that last no longer than renewEarly are spared from being
// asked for again with every call.
func goodUntil(token *oauth2.Token) time.Time {
	if token.Expiry.IsZero() {
		return time.Time{}
	}

	return token.Expiry.Add(-min(renewEarly, time.Until(token.Expiry)/4))
}

// discard has a token not be used again that Director refuses; with none the present one.
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

// refusedToken says why there is no token. Neither addresses nor answers are for users: they may hold what is secret.
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

		return denied(status, "the token endpoint of Director refuses our credentials")
	case answered:
		return failure.New(failure.Transient, "the token endpoint of Director answered with HTTP status %d", answer.Response.StatusCode).
			WithReason(failure.ReasonHTTPStatus, failure.ComponentDirectorToken)
	}

	return failure.Wrap(failure.Transient, inner(err), "the token endpoint of Director cannot be reached, or gives no token").
		WithReason(failure.ReasonInternal, failure.ComponentDirectorToken)
}

// denied is for credentials that somebody has to repair: what needs them is tried again until then.
func denied(cause error, said string) error {
	return failure.Wrap(failure.Transient, cause, "%s: an operator has to repair them, see APP_DIRECTOR_OAUTH_PATH and APP_OAUTH_CREDENTIALS_SECRET_NAME",
		said).WithReason("Unauthorized", failure.ComponentDirectorToken)
}
