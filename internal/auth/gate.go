package auth

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/environment-broker/environment-broker/internal/httpserver"
)

// Sentences for those who are not let in.
const (
	textUnknown     = "The request has no credentials. WWW-Authenticate tells which ones are accepted."
	textForbidden   = "The user has no role that allows this."
	textUnavailable = "The credentials cannot be checked for now. Try again later."
	textTooMany     = "This client sends more requests than it may. Try again later."
)

// Why a request was not let in.
const (
	Unauthenticated = "unauthenticated"
	Forbidden       = "forbidden"
	RateLimited     = "rate_limited"
	Unchecked       = "unchecked"
)

// uncheckedWait is when to come back after credentials could not be checked.
const uncheckedWait = 5 * time.Second

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

type witnessKey struct{}

// Witness returns a context in which a gate leaves who it has found, also those whom it does not let in.
func Witness(ctx context.Context) (context.Context, *Identity) {
	found := &Identity{}

	return context.WithValue(ctx, witnessKey{}, found), found
}

// Gate stands before the endpoints of a service.
type Gate struct {
	Mechanism Mechanism
	// Limits bounds the requests of each client. Without it there is no bound.
	Limits *Limiter
	// Refused, if any, is told why a request was not let in: Unauthenticated, Forbidden, RateLimited or Unchecked.
	Refused func(why string)
}

// NewGate returns a gate without limits.
func NewGate(mechanism Mechanism) *Gate { return &Gate{Mechanism: mechanism} }

// Require returns a middleware that lets those with one of the roles pass: 401 without valid credentials, 403 without a role, 429 beyond
// the client's limit, 503 when credentials cannot be checked. The request goes on with its identity in the context.
func (g *Gate) Require(roles ...Role) httpserver.Middleware {
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			identity, err := g.Mechanism.Authenticate(r)
			rejection, rejected := errors.AsType[*Rejection](err)

			if found, wanted := r.Context().Value(witnessKey{}).(*Identity); wanted {
				*found = identity
			}

			switch {
			case errors.Is(err, ErrNoCredentials):
				g.challenge(w, r, textUnknown)
			case rejected:
				g.challenge(w, r, rejection.Why)
			case err != nil:
				g.refuse(w, r, Unchecked, &httpserver.Refusal{
					Status: http.StatusServiceUnavailable, Code: "Unavailable", Description: textUnavailable,
					RetryAfter: uncheckedWait, Cause: err,
				})
			case !identity.Has(roles...):
				g.refuse(w, r.WithContext(NewContext(r.Context(), identity)), Forbidden, &httpserver.Refusal{
					Status: http.StatusForbidden, Code: "Forbidden", Description: textForbidden,
				})
			default:
				g.pass(next, w, r.WithContext(NewContext(r.Context(), identity)))
			}
		})
	}
}

// Public returns a middleware for endpoints that everybody may use, within the client's limit.
func (g *Gate) Public(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { g.pass(next, w, r) })
}

// pass hands the request on, unless its client has sent too many.
func (g *Gate) pass(next http.Handler, w http.ResponseWriter, r *http.Request) {
	if wait := g.Limits.Take(clientOf(r)); wait > 0 {
		g.refuse(w, r, RateLimited, &httpserver.Refusal{
			Status: http.StatusTooManyRequests, Code: "TooManyRequests", Description: textTooMany, RetryAfter: wait,
		})

		return
	}

	next.ServeHTTP(w, r)
}

// clientOf names a client: by who it is, else by where it comes from.
func clientOf(r *http.Request) string {
	if identity := FromContext(r.Context()); identity.Name != "" {
		return string(identity.Means) + " " + identity.Name
	}

	return Network(r.RemoteAddr)
}

func (g *Gate) challenge(w http.ResponseWriter, r *http.Request, why string) {
	if challenge := g.Mechanism.Challenge(); challenge != "" {
		w.Header().Set("WWW-Authenticate", challenge)
	}

	g.refuse(w, r, Unauthenticated, &httpserver.Refusal{
		Status: http.StatusUnauthorized, Code: "Unauthorized", Description: why,
	})
}

func (g *Gate) refuse(w http.ResponseWriter, r *http.Request, why string, refusal *httpserver.Refusal) {
	if g.Refused != nil {
		g.Refused(why)
	}

	httpserver.Endpoint(func(*http.Request) (httpserver.Answer, error) { return httpserver.Answer{}, refusal }).ServeHTTP(w, r)
}
