package auth

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/environment-broker/environment-broker/internal/httpserver"
)

// Descriptions of rejected requests.
const (
	textUnauthenticated = "The request has no credentials. WWW-Authenticate lists the accepted kinds."
	textForbidden       = "The user has no role that allows this."
	textUnchecked       = "The credentials cannot be verified for now. Try again later."
	textRateLimited     = "This client sends more requests than it may. Try again later."
)

// Reasons for rejecting a request, values of the label reason of environment_broker_requests_refused_total.
const (
	Unauthenticated = "unauthenticated"
	Forbidden       = "forbidden"
	RateLimited     = "rate_limited"
	// Unchecked means that the credentials could not be verified.
	Unchecked = "unchecked"
)

// uncheckedWait is the Retry-After of requests whose credentials could not be verified.
const uncheckedWait = 5 * time.Second

type identityKey struct{}

// NewContext returns a context with the identity of the client.
func NewContext(ctx context.Context, identity Identity) context.Context {
	return context.WithValue(ctx, identityKey{}, identity)
}

// FromContext returns the identity of the client; without authentication, an identity without a name.
func FromContext(ctx context.Context) Identity {
	identity, _ := ctx.Value(identityKey{}).(Identity)

	return identity
}

type capturedKey struct{}

// CaptureIdentity returns a context in which an Authorizer stores the identity that it found, even if it rejects the request. The
// identity is set once the wrapped handler has returned.
func CaptureIdentity(ctx context.Context) (context.Context, *Identity) {
	found := &Identity{}

	return context.WithValue(ctx, capturedKey{}, found), found
}

// Authorizer protects endpoints.
type Authorizer struct {
	Authenticator Authenticator
	// Limits bounds the requests of each client; nil means no limit.
	Limits *Limiter
	// Refused, if set, is called with the reason of each rejection: Unauthenticated, Forbidden, RateLimited or Unchecked.
	Refused func(reason string)
}

// NewAuthorizer returns an authorizer without limits.
func NewAuthorizer(authenticator Authenticator) *Authorizer {
	return &Authorizer{Authenticator: authenticator}
}

// Require returns a middleware that passes requests of clients with one of the roles, with the identity in their context. It responds 401
// without valid credentials, 403 without a role, 429 beyond the client's limit, and 503 if the credentials cannot be verified. It checks in
// this order, so a request with a wrong password takes no token from the bucket of the user that it names.
func (a *Authorizer) Require(roles ...Role) httpserver.Middleware {
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			identity, err := a.Authenticator.Authenticate(r)
			rejection, rejected := errors.AsType[*Rejection](err)

			if captured, wanted := r.Context().Value(capturedKey{}).(*Identity); wanted {
				*captured = identity
			}

			switch {
			case errors.Is(err, ErrNoCredentials):
				a.challenge(w, r, textUnauthenticated)
			case rejected:
				a.challenge(w, r, rejection.Why)
			case err != nil:
				a.refuse(w, r, Unchecked, &httpserver.Refusal{
					Status: http.StatusServiceUnavailable, Code: "Unavailable", Description: textUnchecked,
					RetryAfter: uncheckedWait, Cause: err,
				})
			case !identity.Has(roles...):
				a.refuse(w, r.WithContext(NewContext(r.Context(), identity)), Forbidden, &httpserver.Refusal{
					Status: http.StatusForbidden, Code: "Forbidden", Description: textForbidden,
				})
			default:
				a.limit(next, w, r.WithContext(NewContext(r.Context(), identity)))
			}
		})
	}
}

// Public returns a middleware for endpoints without authentication. It applies the client's rate limit.
func (a *Authorizer) Public(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { a.limit(next, w, r) })
}

// limit passes the request unless its client has exceeded its rate.
func (a *Authorizer) limit(next http.Handler, w http.ResponseWriter, r *http.Request) {
	if wait := a.Limits.Take(clientOf(r)); wait > 0 {
		a.refuse(w, r, RateLimited, &httpserver.Refusal{
			Status: http.StatusTooManyRequests, Code: "TooManyRequests", Description: textRateLimited, RetryAfter: wait,
		})

		return
	}

	next.ServeHTTP(w, r)
}

// clientOf returns the key of a client's rate limit: its identity, or else its network.
func clientOf(r *http.Request) string {
	if identity := FromContext(r.Context()); identity.Name != "" {
		return string(identity.Means) + " " + identity.Name
	}

	return ClientNetwork(r.RemoteAddr)
}

// challenge responds 401. A reason never says whether the user exists.
func (a *Authorizer) challenge(w http.ResponseWriter, r *http.Request, why string) {
	if challenge := a.Authenticator.Challenge(); challenge != "" {
		w.Header().Set("WWW-Authenticate", challenge)
	}

	a.refuse(w, r, Unauthenticated, &httpserver.Refusal{
		Status: http.StatusUnauthorized, Code: "Unauthorized", Description: why,
	})
}

// refuse counts the rejection and responds with the refusal, as an endpoint that returns it would.
func (a *Authorizer) refuse(w http.ResponseWriter, r *http.Request, reason string, refusal *httpserver.Refusal) {
	if a.Refused != nil {
		a.Refused(reason)
	}

	httpserver.Endpoint(func(*http.Request) (httpserver.Response, error) { return httpserver.Response{}, refusal }).ServeHTTP(w, r)
}
