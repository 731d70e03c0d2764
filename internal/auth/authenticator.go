package auth

import (
	"errors"
	"net/http"
	"strings"
)

// Authenticator identifies the client of a request by one kind of credentials.
type Authenticator interface {
	// Authenticate returns the client's identity. It returns ErrNoCredentials if the request has no credentials of the kind, a *Rejection if
	// they are invalid, and any other error if they cannot be verified for now.
	Authenticate(r *http.Request) (Identity, error)
	// Challenge returns the challenge for WWW-Authenticate, or empty if HTTP defines none.
	Challenge() string
}

// ErrNoCredentials reports a request without credentials of the kind that an Authenticator verifies.
var ErrNoCredentials = errors.New("the request has no credentials")

// Rejection says why credentials are invalid, in a text that unauthenticated clients may read.
type Rejection struct{ Why string }

// Error returns the reason.
func (r *Rejection) Error() string { return r.Why }

func reject(why string) error { return &Rejection{Why: why} }

// AnyOf combines authenticators. The first one whose credentials a request carries decides, even if they are invalid.
type AnyOf []Authenticator

// Authenticate implements Authenticator.
func (a AnyOf) Authenticate(r *http.Request) (Identity, error) {
	for _, authenticator := range a {
		identity, err := authenticator.Authenticate(r)
		if !errors.Is(err, ErrNoCredentials) {
			return identity, err
		}
	}

	return Identity{}, ErrNoCredentials
}

// Challenge implements Authenticator.
func (a AnyOf) Challenge() string {
	var challenges []string

	for _, authenticator := range a {
		if challenge := authenticator.Challenge(); challenge != "" {
			challenges = append(challenges, challenge)
		}
	}

	return strings.Join(challenges, ", ")
}

// NoAuthentication grants every request all roles. CheckAddress allows it on the loopback only.
type NoAuthentication struct{}

// Authenticate implements Authenticator.
func (NoAuthentication) Authenticate(*http.Request) (Identity, error) {
	return Identity{Roles: []Role{RoleOSB, RoleAdmin}}, nil
}

// Challenge implements Authenticator.
func (NoAuthentication) Challenge() string { return "" }
