package auth

import (
	"context"
	"io"
	"net/http"
)

// The bodies of refusals: the form of the Open Service Broker API, which the operator API shares.
const (
	unauthorized = `{"error":"Unauthorized","description":"Send the name and the password of a user by HTTP Basic authentication."}`
	forbidden    = `{"error":"Forbidden","description":"The user has no role that allows this."}`
)

type identityKey struct{}

// NewContext returns a context that carries who makes the request.
func NewContext(ctx context.Context, identity Identity) context.Context {
	return context.WithValue(ctx, identityKey{}, identity)
}

// FromContext returns who makes the request. Where nobody was asked, it is an identity without a name.
func FromContext(ctx context.Context) Identity {
	identity, _ := ctx.Value(identityKey{}).(Identity)

	return identity
}

// Require returns a middleware that lets users with one of the roles pass: 401 without valid credentials, 403 without a role. The
// request goes on with the user in its context.
func Require(users Users, roles ...Role) func(http.Handler) http.Handler {
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if users.None() {
				next.ServeHTTP(w, r.WithContext(NewContext(r.Context(), Identity{Roles: []Role{RoleOSB, RoleAdmin}})))

				return
			}

			name, password, sent := r.BasicAuth()
			identity, known := users.Authenticate(name, password)

			switch {
			case !sent || !known:
				w.Header().Set("WWW-Authenticate", `Basic realm="environment broker", charset="UTF-8"`)
				refuse(w, http.StatusUnauthorized, unauthorized)
			case !identity.Has(roles...):
				refuse(w, http.StatusForbidden, forbidden)
			default:
				next.ServeHTTP(w, r.WithContext(NewContext(r.Context(), identity)))
			}
		})
	}
}

func refuse(w http.ResponseWriter, status int, body string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = io.WriteString(w, body+"\n") // a client that hung up gets nothing
}
