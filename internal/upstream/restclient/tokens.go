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
	"github.com/environment-broker/environment-broker/internal/upstream"
)

// defaultLifetime is the assumed lifetime of a token if the response does not contain expires_in, which RFC 6749 does not
// require.
const defaultLifetime = 5 * time.Minute

// maxLifetime is when a token is replaced that claims to be valid for longer. The number of seconds is otherwise unlimited.
const maxLifetime = 24 * time.Hour

// Grant describes the request for an OAuth 2.0 token (RFC 6749). The client credentials are sent in the Authorization header.
type Grant struct {
	// URL is the token endpoint.
	URL          string
	ClientID     string
	ClientSecret secret.String
	// Type is the grant type: client_credentials or password. Username and Password are used only for the type password.
	Type     string
	Username string
	Password secret.String
	Scopes   []string
}

// requestToken requests a token from the token endpoint. If the credentials are rejected, the error is of kind Transient,
// because an operator can correct them.
func (c *Client) requestToken(ctx context.Context) (upstream.Token, error) {
	grant, options := c.options.Grant, c.options

	form := url.Values{"grant_type": {grant.Type}}
	if grant.Username != "" {
		form.Set("username", grant.Username)
		form.Set("password", grant.Password.Reveal())
	}

	if len(grant.Scopes) > 0 {
		form.Set("scope", strings.Join(grant.Scopes, " "))
	}

	request, err := http.NewRequestWithContext(ctx, http.MethodPost, grant.URL, strings.NewReader(form.Encode()))
	if err != nil {
		return upstream.Token{}, failure.New(failure.Permanent, "the address of the token endpoint of %s is invalid: see %s", options.Title, options.Settings).
			WithReason(failure.ReasonInternal, options.Component)
	}

	request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	request.SetBasicAuth(url.QueryEscape(grant.ClientID), url.QueryEscape(grant.ClientSecret.Reveal())) // RFC 6749, 2.3.1

	got, err := c.exchange(request, nil)
	if err != nil {
		return upstream.Token{}, err
	}

	switch {
	case got.Status == http.StatusBadRequest || got.Status == http.StatusUnauthorized || got.Status == http.StatusForbidden:
		return upstream.Token{}, c.transient(failure.ReasonHTTPStatus, nil, "the token endpoint of %s rejects the credentials: an operator must correct %s",
			options.Title, options.Settings)
	case got.Status != http.StatusOK:
		return upstream.Token{}, c.transient(failure.ReasonHTTPStatus, &got.StatusError, "the token endpoint of %s returned HTTP status %d",
			options.Title, got.Status)
	}

	var issued struct {
		AccessToken string `json:"access_token"`
		ExpiresIn   int    `json:"expires_in"`
	}

	if err := json.Unmarshal(got.content, &issued); err != nil || issued.AccessToken == "" {
		return upstream.Token{}, c.transient(failure.ReasonHTTPStatus, nil, "the token endpoint of %s returned no token", options.Title)
	}

	lifetime := defaultLifetime
	if issued.ExpiresIn > 0 {
		lifetime = time.Duration(min(issued.ExpiresIn, int(maxLifetime/time.Second))) * time.Second
	}

	return upstream.Token{Value: issued.AccessToken, Expiry: time.Now().Add(lifetime)}, nil
}
