package auth

import (
	"errors"
	"net/http"
	"strings"
)

// Authenticator identifies the client of a request by one kind of credentials. Servers call it from many goroutines.
type Authenticator interface {
	// Authenticate returns the client's identity. The error is ErrNoCredentials if the request has no credentials of this kind,
	// and a *Rejection if the credentials are invalid. Any other error means that the credentials cannot be verified at the
	// moment; the client gets 503.
	Authenticate(r *http.Request) (Identity, error)
	// Challenge returns the challenge for the WWW-Authenticate header, or an empty string if HTTP defines no scheme for the
	// credentials.
	Challenge() string
}

// ErrNoCredentials reports a request without credentials of the kind that an Authenticator verifies.
var ErrNoCredentials = errors.New("the request has no credentials")

// Rejection reports invalid credentials. Why becomes the description of the response. It must be a full sentence, and it must not
// reveal internal facts to an unauthenticated client, such as whether a user exists.
type Rejection struct{ Why string }

// Error returns Why.
func (r *Rejection) Error() string { return r.Why }

func reject(why string) error { return &Rejection{Why: why} }

// AnyOf combines several authenticators. The first authenticator that finds credentials of its kind decides, even if the
// credentials are invalid.
type AnyOf []Authenticator

// Authenticate implements Authenticator. It returns ErrNoCredentials if no authenticator finds credentials.
func (a AnyOf) Authenticate(r *http.Request) (Identity, error) {
	for _, authenticator := range a {
		identity, err := authenticator.Authenticate(r)
		if !errors.Is(err, ErrNoCredentials) {
			return identity, err
		}
	}

	return Identity{}, ErrNoCredentials
}

// Challenge implements Authenticator. It returns the comma-separated challenges of all authenticators, so clients can choose a
// scheme.
func (a AnyOf) Challenge() string {
	var challenges []string

	for _, authenticator := range a {
		if challenge := authenticator.Challenge(); challenge != "" {
			challenges = append(challenges, challenge)
		}
	}

	return strings.Join(challenges, ", ")
}

// NoAuthentication grants every request all roles. CheckAddress allows NoAuthentication only on the loopback interface.
type NoAuthentication struct{}

// Authenticate implements Authenticator.
func (NoAuthentication) Authenticate(*http.Request) (Identity, error) {
	return Identity{Roles: []Role{RoleOSB, RoleAdmin}}, nil
}

// Challenge implements Authenticator.
func (NoAuthentication) Challenge() string { return "" }
