package auth

import (
	"errors"
	"net/http"
	"strings"
)

// Mechanism finds out who makes a request, by one kind of credentials.
type Mechanism interface {
	// Authenticate returns who makes the request. Its errors are ErrNoCredentials where the request has none of the kind, a *Rejection
	// where they are wrong, and anything else where they cannot be checked for now.
	Authenticate(r *http.Request) (Identity, error)
	// Challenge is what WWW-Authenticate says of it, or empty.
	Challenge() string
}

// ErrNoCredentials tells that a request has no credentials of the kind that is looked for.
var ErrNoCredentials = errors.New("the request has no credentials")

// Rejection is why credentials are not accepted, in words that a stranger may read.
type Rejection struct{ Why string }

// Error returns why.
func (r *Rejection) Error() string { return r.Why }

func reject(why string) error { return &Rejection{Why: why} }

// AnyOf is several mechanisms as one. The first of them whose credentials a request has decides, also when they are wrong.
type AnyOf []Mechanism

// Authenticate implements Mechanism.
func (a AnyOf) Authenticate(r *http.Request) (Identity, error) {
	for _, mechanism := range a {
		identity, err := mechanism.Authenticate(r)
		if !errors.Is(err, ErrNoCredentials) {
			return identity, err
		}
	}

	return Identity{}, ErrNoCredentials
}

// Challenge implements Mechanism.
func (a AnyOf) Challenge() string {
	var challenges []string

	for _, mechanism := range a {
		if challenge := mechanism.Challenge(); challenge != "" {
			challenges = append(challenges, challenge)
		}
	}

	return strings.Join(challenges, ", ")
}

// Everybody asks nobody: whoever makes a request may do everything. A service allows that on the loopback only.
type Everybody struct{}

// Authenticate implements Mechanism.
func (Everybody) Authenticate(*http.Request) (Identity, error) {
	return Identity{Roles: []Role{RoleOSB, RoleAdmin}}, nil
}

// Challenge implements Mechanism.
func (Everybody) Challenge() string { return "" }
