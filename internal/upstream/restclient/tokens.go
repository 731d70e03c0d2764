package restclient

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/environment-broker/environment-broker/internal/failure"
	"github.com/environment-broker/environment-broker/internal/secret"
)

const (
	// renewEarly is how long before its expiry a token is replaced, so that it does not expire on its way.
	renewEarly = 30 * time.Second
	// defaultLifetime is the lifetime of a token whose response has no expires_in. RFC 6749 leaves it to the server.
	defaultLifetime = 5 * time.Minute
)

// Grant is the request for an OAuth 2.0 token (RFC 6749), with the credentials of the client in the header.
type Grant struct {
	// URL is the token endpoint.
	URL          string
	ClientID     string
	ClientSecret secret.String
	// Type is client_credentials or password. Username and Password belong to the latter.
	Type     string
	Username string
	Password secret.String
	Scopes   []string
}

// tokens caches a token until shortly before its expiry, or until the system rejects it. Only one request for a token runs at a
// time.
type tokens struct {
	client *Client
	grant  Grant
	// turn is a lock with a cancelable wait. It protects the fields below.
	turn      chan struct{}
	current   string
	goodUntil time.Time
}

// get returns the cached token or requests a new one.
func (t *tokens) get(ctx context.Context) (string, error) {
	select {
	case t.turn <- struct{}{}:
	case <-ctx.Done():
		return "", t.client.unanswered(ctx, ctx.Err())
	}
	defer func() { <-t.turn }()

	if t.current != "" && time.Now().Before(t.goodUntil) {
		return t.current, nil
	}

	token, lifetime, err := t.request(ctx)
	if err != nil {
		return "", err
	}

	// A token with a short life is used for three quarters of it; otherwise every call would request one.
	t.current, t.goodUntil = token, time.Now().Add(lifetime-min(renewEarly, lifetime/4))

	return token, nil
}

// discard removes the cached token if it is the rejected one. A newer token from a concurrent call stays.
func (t *tokens) discard(rejected string) {
	t.turn <- struct{}{}
	defer func() { <-t.turn }()

	if t.current == rejected {
		t.current = ""
	}
}

// request asks the token endpoint for a token.
func (t *tokens) request(ctx context.Context) (string, time.Duration, error) {
	form := url.Values{"grant_type": {t.grant.Type}}
	if t.grant.Username != "" {
		form.Set("username", t.grant.Username)
		form.Set("password", t.grant.Password.Reveal())
	}

	if len(t.grant.Scopes) > 0 {
		form.Set("scope", strings.Join(t.grant.Scopes, " "))
	}

	options := t.client.options

	request, err := http.NewRequestWithContext(ctx, http.MethodPost, t.grant.URL, strings.NewReader(form.Encode()))
	if err != nil {
		return "", 0, failure.New(failure.Permanent, "the address of the tokens of %s is invalid: see %s", options.Title, options.Settings).
			WithReason(failure.ReasonInternal, options.Component)
	}

	request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	request.SetBasicAuth(url.QueryEscape(t.grant.ClientID), url.QueryEscape(t.grant.ClientSecret.Reveal())) // RFC 6749, 2.3.1

	got, err := t.client.exchange(request)
	if err != nil {
		return "", 0, err
	}

	switch {
	case got.Status == http.StatusBadRequest || got.Status == http.StatusUnauthorized || got.Status == http.StatusForbidden:
		return "", 0, t.client.transient(failure.ReasonHTTPStatus, nil, "the token endpoint of %s rejects our credentials: an operator must correct %s",
			options.Title, options.Settings)
	case got.Status != http.StatusOK:
		return "", 0, t.client.transient(failure.ReasonHTTPStatus, &got.StatusError, "the token endpoint of %s returned HTTP status %d",
			options.Title, got.Status)
	}

	var issued struct {
		AccessToken string `json:"access_token"`
		ExpiresIn   int    `json:"expires_in"`
	}

	if err := json.Unmarshal(got.content, &issued); err != nil || issued.AccessToken == "" {
		return "", 0, t.client.transient(failure.ReasonHTTPStatus, nil, "the token endpoint of %s returned no token", options.Title)
	}

	if issued.ExpiresIn <= 0 {
		return issued.AccessToken, defaultLifetime, nil
	}

	return issued.AccessToken, time.Duration(issued.ExpiresIn) * time.Second, nil
}
