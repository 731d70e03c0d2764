package session

import (
	"context"
	"crypto/rand"
	"net/http"
	"slices"
	"time"

	"github.com/environment-broker/environment-broker/internal/auth"
)

// Tenant determines which instances a user without a role sees.
type Tenant struct {
	// Name is compared with the administrators of an instance. It is empty if the token does not contain the configured claim, or if
	// the claim is an unverified email address.
	Name string `json:"n,omitempty"`
	// Accounts are the global accounts of the user.
	Accounts []string `json:"a,omitempty"`
}

// Owns reports whether the user may see an instance with the given account and administrators.
func (t Tenant) Owns(account string, administrators []string) bool {
	return t.Name != "" && slices.Contains(administrators, t.Name) || account != "" && slices.Contains(t.Accounts, account)
}

// Session is the session of a request.
type Session struct {
	// Tenant is zero for users with passwords and client certificates.
	Tenant Tenant
	// Expires is when the session ends if the user sends no more requests. It is zero if the client needs no login. Long
	// responses must end by then.
	Expires time.Time
	// CanLogOut reports whether the client has logged in, and can therefore log out.
	CanLogOut bool
}

type sessionKey struct{}

// FromContext returns the session of the request, or a zero Session if there is none.
func FromContext(ctx context.Context) Session {
	session, _ := ctx.Value(sessionKey{}).(Session)

	return session
}

// stored is the content of the session cookie.
type stored struct {
	ID    string     `json:"i"`
	Name  string     `json:"u"`
	Means auth.Means `json:"m"`
	// Proof shows that a password is still valid; see auth.Proof.
	Proof []byte `json:"p,omitempty"`
	// Claims are those claims of the ID token that grant roles.
	Claims map[string][]string `json:"c,omitempty"`
	Tenant Tenant              `json:"t,omitzero"`
	// Begun is when the user logged in. Seen is when the cookie was last renewed.
	Begun time.Time `json:"b"`
	Seen  time.Time `json:"s"`
}

// newID returns an unpredictable ID for a session or a login.
func newID() string { return rand.Text() }

// identity returns the user of the session with the roles that the current configuration grants. It returns false if the password is
// no longer valid, or if the configuration no longer permits this kind of login. It does not contact the issuer, so a user whom
// the issuer has blocked keeps the session until it expires.
func (s *Sessions) identity(session stored) (auth.Identity, bool) {
	switch {
	case session.Means == auth.ByPassword && s.Access.Passwords != nil:
		return s.Access.Passwords().Proven(session.Name, session.ID, session.Proof)
	case session.Means == auth.ByToken && s.Access.Tokens != nil && s.Config.OIDCClientID != "":
		return auth.Identity{
			Name: session.Name, Means: auth.ByToken, Roles: s.Access.Tokens.Roles(session.Claims), Attributes: session.Claims,
		}, true
	default:
		return auth.Identity{}, false
	}
}

// expires returns when the session ends if no more requests arrive.
func (s *Sessions) expires(session stored) time.Time {
	idle, end := session.Seen.Add(s.Config.IdleTimeout), session.Begun.Add(s.Config.Lifetime)
	if idle.Before(end) {
		return idle
	}

	return end
}

// client returns the client of the request and its session. It returns false for clients that must log in. It may renew the session,
// which adds a cookie to the response.
func (s *Sessions) client(w http.ResponseWriter, r *http.Request) (auth.Identity, Session, bool) {
	var session stored

	if s.sessions.get(r, s.secure(r), &session) && s.Clock.Now().Before(s.expires(session)) {
		if identity, valid := s.identity(session); valid {
			s.renew(w, r, &session)

			return identity, Session{Tenant: session.Tenant, Expires: s.expires(session), CanLogOut: true}, true
		}
	}

	// Clients with a certificate need no login. If the service has no authentication, no client needs one. Passwords and tokens
	// in the Authorization header are valid only for the APIs.
	request := r.Clone(r.Context())
	request.Header.Del("Authorization")

	identity, err := s.Access.Authorizer.Authenticator.Authenticate(request)

	return identity, Session{}, err == nil
}

// renew extends the session of an active user. It sets the cookie at most 20 times per idle timeout. Automatic requests from a
// page do not extend the session, because an unattended page would otherwise keep its session alive.
func (s *Sessions) renew(w http.ResponseWriter, r *http.Request, session *stored) {
	const steps = 20

	now := s.Clock.Now()
	if automatic(r) || now.Sub(session.Seen) < s.Config.IdleTimeout/steps {
		return
	}

	session.Seen = now
	if err := s.sessions.set(w, s.secure(r), session, s.expires(*session).Sub(now)); err != nil {
		s.Log.WithError(err).Warn("renewing a console session failed")
	}
}

// automatic reports whether the page sent the request without an action by the user.
func automatic(r *http.Request) bool {
	return r.Header.Get("Accept") == "text/event-stream" || r.Header.Get("X-Console-Live") != ""
}

// begin sets the cookie of a new session, which replaces the cookie of an earlier session. The caller must have given the session
// a new ID.
func (s *Sessions) begin(w http.ResponseWriter, r *http.Request, session stored) error {
	session.Begun = s.Clock.Now()
	session.Seen = session.Begun

	return s.sessions.set(w, s.secure(r), session, s.expires(session).Sub(session.Begun))
}
