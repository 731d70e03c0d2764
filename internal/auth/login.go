package auth

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
	"golang.org/x/oauth2"
)

// DelayedError reports a login that is delayed because of other failed logins, so it says nothing about the password. Wait is the time
// until the next attempt is allowed.
type DelayedError struct{ Wait time.Duration }

// Error returns the text for the user.
func (*DelayedError) Error() string { return textLoginDelayed }

// Password returns the user whose name and password were sent in a form. It delays logins after failed ones exactly as Require
// does, and both share the count of failures. The error is a *DelayedError or a *Rejection.
func (a *Authorizer) Password(r *http.Request, users Users, name, password string) (Identity, error) {
	attempt := r.Clone(r.Context())
	attempt.SetBasicAuth(name, password)

	var (
		identity Identity
		matched  bool
	)

	if wait := a.logins.try(attempt, func() bool {
		identity, matched = users.Find(name, password)

		return !matched
	}); wait > 0 {
		a.count(LoginDelayed)

		return Identity{}, &DelayedError{Wait: wait}
	}

	if !matched {
		a.count(Unauthenticated)

		return Identity{}, reject(textWrongPassword)
	}

	return identity, nil
}

func (a *Authorizer) count(reason string) {
	if a.Refused != nil {
		a.Refused(reason)
	}
}

// For returns an authenticator for tokens from the same issuer with another audience, such as the client ID of a browser login.
// Both share the issuer's cached keys.
func (t *Tokens) For(audience string) *Tokens {
	other := *t
	other.options.Audiences = []string{audience}

	return &other
}

// Roles returns the roles that the rules grant to a client with the given claims.
func (t *Tokens) Roles(claims map[string][]string) []Role { return t.options.Rules.roles(claims) }

// Relevant returns only the claim values that grant roles. Passed to Roles, they grant the same roles as all claims together.
func (t *Tokens) Relevant(claims map[string][]string) map[string][]string {
	return t.options.Rules.relevant(claims)
}

// Endpoint returns the URLs at which browsers log in and at which the service exchanges codes for tokens. It reads them from the
// issuer's discovery document.
func (t *Tokens) Endpoint(ctx context.Context) (oauth2.Endpoint, error) {
	ctx, cancel := context.WithTimeout(ctx, keysTimeout)
	defer cancel()

	provider, err := oidc.NewProvider(t.ClientContext(ctx), t.options.Issuer)
	if err != nil {
		return oauth2.Endpoint{}, fmt.Errorf("fetching the configuration of the issuer: %w", err)
	}

	endpoint := provider.Endpoint()
	for _, text := range []string{endpoint.AuthURL, endpoint.TokenURL} {
		if !safeText(text) {
			return oauth2.Endpoint{}, errors.New("the issuer's authorization and token URLs must use https")
		}
	}

	return endpoint, nil
}

// ClientContext returns a context with an HTTP client that the oauth2 and oidc packages use for calls to the issuer. The client
// limits the duration and the size of responses, and follows no redirects.
func (t *Tokens) ClientContext(ctx context.Context) context.Context {
	client := t.keys.bounded()
	client.Timeout = keysTimeout
	client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }

	return oidc.ClientContext(ctx, client)
}
