package session

import (
	"context"
	"crypto/subtle"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/oauth2"
	"k8s.io/utils/clock"

	"github.com/environment-broker/environment-broker/internal/audit"
	"github.com/environment-broker/environment-broker/internal/auth"
)

const (
	// loginLimit is the maximum time between the start and the end of a login at the issuer.
	loginLimit = 10 * time.Minute
	// endpointLifetime is how long the endpoints of the issuer are cached. endpointPause is the minimum time between a failed attempt to
	// read them and the next one, so that clients without credentials cannot cause load on the issuer.
	endpointLifetime, endpointPause = 5 * time.Minute, 5 * time.Second
)

// Messages for users.
const (
	textLoginOver    = "This login has expired or was started in another window. Start again."
	textIssuerDenied = "The issuer did not confirm the login."
)

// pending is the content of the cookie for a login in progress at the issuer.
type pending struct {
	// State ties the response of the issuer to this browser, and Nonce ties the token to this login. Verifier is the PKCE code
	// verifier.
	State, Nonce, Verifier string
	Return                 string
	Begun                  time.Time
}

// issuer is the OAuth client for the OIDC issuer. It caches the endpoints that the issuer publishes.
type issuer struct {
	tokens *auth.Tokens
	config oauth2.Config
	clock  clock.PassiveClock

	mutex sync.Mutex
	// endpoint and failed are the result of the last attempt to read the endpoints, and read is the time of that attempt.
	endpoint oauth2.Endpoint
	failed   error
	read     time.Time
}

func newIssuer(options Options) *issuer {
	return &issuer{
		tokens: options.Access.Tokens.For(options.Config.OIDCClientID), clock: options.Clock,
		config: oauth2.Config{
			ClientID: options.Config.OIDCClientID, ClientSecret: options.Config.OIDCClientSecret.Reveal(),
			Scopes:      options.Config.OIDCScopes,
			RedirectURL: strings.TrimSuffix(options.PublicURL, "/") + pathCallback,
		},
	}
}

// configuration returns the OAuth configuration with the endpoints of the issuer. It reads the endpoints again if the cached ones
// are older than endpointLifetime.
func (i *issuer) configuration(ctx context.Context) (*oauth2.Config, error) {
	i.mutex.Lock()
	defer i.mutex.Unlock()

	lifetime := endpointLifetime
	if i.failed != nil {
		lifetime = endpointPause
	}

	if i.read.IsZero() || i.clock.Since(i.read) >= lifetime {
		i.endpoint, i.failed = i.tokens.Endpoint(context.WithoutCancel(ctx))
		i.read = i.clock.Now()
	}

	if i.failed != nil {
		return nil, i.failed
	}

	config := i.config
	config.Endpoint = i.endpoint

	return &config, nil
}

// beginOIDC redirects the browser to the issuer.
func (s *Sessions) beginOIDC(w http.ResponseWriter, r *http.Request) {
	page := returnTo(r.URL.Query().Get("return"))

	if s.issuer == nil {
		s.page(w, r, http.StatusNotFound, loginPage{Problem: "Single sign-on is not configured for this broker.", Return: page})

		return
	}

	config, err := s.issuer.configuration(r.Context())
	if err != nil {
		s.unavailable(w, r, page, err)

		return
	}

	login := pending{State: newID(), Nonce: newID(), Verifier: oauth2.GenerateVerifier(), Return: page, Begun: s.Clock.Now()}
	if err := s.logins.set(w, s.secure(r), login, loginLimit); err != nil {
		s.unavailable(w, r, page, err)

		return
	}

	http.Redirect(w, r, config.AuthCodeURL(login.State, oauth2.SetAuthURLParam("nonce", login.Nonce), oauth2.S256ChallengeOption(login.Verifier)),
		http.StatusSeeOther)
}

// endOIDC handles the redirect from the issuer back to the console: it exchanges the code for a token, and starts a session.
func (s *Sessions) endOIDC(w http.ResponseWriter, r *http.Request) {
	var login pending

	found := s.logins.get(r, s.secure(r), &login)
	s.logins.remove(w, s.secure(r))

	query, page := r.URL.Query(), returnTo(login.Return)

	if !found || s.issuer == nil || s.Clock.Since(login.Begun) >= loginLimit || !same(query.Get("state"), login.State) {
		s.refuse(w, r, textLoginOver, page)

		return
	}

	if query.Get("error") != "" || query.Get("code") == "" {
		s.refuse(w, r, textIssuerDenied, page)

		return
	}

	identity, err := s.exchange(r.Context(), query.Get("code"), login)
	if rejection, rejected := errors.AsType[*auth.Rejection](err); rejected {
		s.Log.WithError(rejection).Info("a login at the issuer was rejected")
		s.refuse(w, r, textIssuerDenied, page)

		return
	}

	if err != nil {
		s.unavailable(w, r, page, err)

		return
	}

	s.start(w, r, identity, stored{
		ID: newID(), Name: identity.Name, Means: identity.Means, Claims: s.Access.Tokens.Relevant(identity.Attributes), Tenant: s.tenant(identity),
	}, page)
}

// refuse responds with 401, and marks the request for the audit log.
func (s *Sessions) refuse(w http.ResponseWriter, r *http.Request, problem, page string) {
	audit.Mark(r.Context(), "")
	s.page(w, r, http.StatusUnauthorized, loginPage{Problem: problem, Return: page})
}

// same compares two strings in constant time. Two empty strings are not equal.
func same(one, other string) bool {
	return one != "" && subtle.ConstantTimeCompare([]byte(one), []byte(other)) == 1
}

// exchange returns the user that the issuer has identified by the code. The error is an *auth.Rejection if the issuer rejects the
// code, or if the token is missing, invalid or not for this login. Any other error means that the issuer could not complete the
// exchange.
func (s *Sessions) exchange(ctx context.Context, code string, login pending) (auth.Identity, error) {
	config, err := s.issuer.configuration(ctx)
	if err != nil {
		return auth.Identity{}, err
	}

	received, err := config.Exchange(s.issuer.tokens.ClientContext(ctx), code, oauth2.VerifierOption(login.Verifier))
	if refused, ok := errors.AsType[*oauth2.RetrieveError](err); ok && refused.Response != nil && refused.Response.StatusCode < http.StatusInternalServerError {
		return auth.Identity{}, &auth.Rejection{Why: "The issuer rejected the code."}
	}

	if err != nil {
		return auth.Identity{}, errors.New("exchanging the code at the issuer: " + kindOf(err))
	}

	token, _ := received.Extra("id_token").(string)
	if token == "" {
		return auth.Identity{}, &auth.Rejection{Why: "The issuer sent no ID token."}
	}

	identity, err := s.issuer.tokens.Identify(ctx, token)

	switch {
	case err != nil:
		return auth.Identity{}, err
	case !same(first(identity.Attributes["nonce"]), login.Nonce):
		return auth.Identity{}, &auth.Rejection{Why: "The token belongs to another login."}
	case len(identity.Attributes["azp"]) > 0 && identity.Attributes["azp"][0] != config.ClientID:
		return auth.Identity{}, &auth.Rejection{Why: "The token was issued to another client."}
	}

	return identity, nil
}

// kindOf describes an error from an exchange without quoting the response, which may contain tokens.
func kindOf(err error) string {
	if refused, ok := errors.AsType[*oauth2.RetrieveError](err); ok && refused.Response != nil {
		return fmt.Sprintf("status %d", refused.Response.StatusCode)
	}

	if errors.Is(err, context.DeadlineExceeded) {
		return "no response in time"
	}

	return "no usable response"
}

// tenant returns the claims of the user that determine which instances the user sees. It ignores an email address that the issuer
// marks as unverified, because users could enter somebody else's address.
func (s *Sessions) tenant(identity auth.Identity) Tenant {
	claim := s.Config.TenantNameClaim
	if claim == "" {
		claim = s.NameClaim
	}

	found := Tenant{Name: first(identity.Attributes[claim])}
	if claim == "email" && slices.Contains(identity.Attributes["email_verified"], "false") {
		found.Name = ""
	}

	if s.Config.TenantAccountClaim != "" {
		found.Accounts = identity.Attributes[s.Config.TenantAccountClaim]
	}

	return found
}

func first(values []string) string {
	if len(values) == 0 {
		return ""
	}

	return values[0]
}
