package auth

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"time"

	"github.com/environment-broker/environment-broker/internal/httpserver"
)

// Descriptions of rejected requests, shown to users.
const (
	textUnauthenticated = "The request has no credentials. The WWW-Authenticate header lists the accepted schemes."
	textWrongPassword   = "The user name or the password is wrong."
	textUnchecked       = "The credentials cannot be verified at the moment. Try again later."
	textLoginDelayed    = "Too many failed logins for this user from this address. Check the password and try again later."
	textRateLimited     = "This client has exceeded its rate limit. Try again later."
)

// Reasons for rejecting a request. They are the values of the reason label of the environment_broker_requests_refused_total
// metric.
const (
	Unauthenticated = "unauthenticated"
	Forbidden       = "forbidden"
	RateLimited     = "rate_limited"
	// Unchecked means that the service could not verify the credentials, for example during an outage of the token issuer.
	Unchecked = "unchecked"
	// CrossOrigin means that a browser sent the request on behalf of a page from another origin. UnknownHost means that the Host
	// header names a host that is not allowed; only services without authentication check the host.
	CrossOrigin = "cross_origin"
	UnknownHost = "unknown_host"
	// LoginDelayed means that the password was not compared because of earlier failed logins.
	LoginDelayed = "login_delayed"
)

// uncheckedWait is the Retry-After value in responses to requests that are rejected as Unchecked.
const uncheckedWait = 5 * time.Second

type identityKey struct{}

// NewContext returns a context with the client's identity, which FromContext reads.
func NewContext(ctx context.Context, identity Identity) context.Context {
	return context.WithValue(ctx, identityKey{}, identity)
}

// FromContext returns the client's identity. It returns the zero Identity outside of authorized requests, and an identity without
// a name if the service has no authentication.
func FromContext(ctx context.Context) Identity {
	identity, _ := ctx.Value(identityKey{}).(Identity)

	return identity
}

// Identified returns a context with the identity, like NewContext, and also stores the identity for CaptureIdentity. Handlers that
// identify clients without an Authorizer use it.
func Identified(ctx context.Context, identity Identity) context.Context {
	if captured, wanted := ctx.Value(capturedKey{}).(*Identity); wanted {
		*captured = identity
	}

	return NewContext(ctx, identity)
}

type capturedKey struct{}

// CaptureIdentity returns a context and a pointer to an identity. An inner Authorizer sets the identity, even if it rejects the
// request. A middleware outside of the Authorizer can read the identity after the inner handler has returned.
func CaptureIdentity(ctx context.Context) (context.Context, *Identity) {
	found := &Identity{}

	return context.WithValue(ctx, capturedKey{}, found), found
}

// Authorizer protects endpoints. It is safe for concurrent use.
type Authorizer struct {
	Authenticator Authenticator
	// Limits bounds the request rate of each client; nil means no limit.
	Limits *Limiter
	// Refused, if not nil, is called for each rejected request. The reason is one of the constants of this package.
	Refused func(reason string)

	// guard checks the origin and the host of each request; nil accepts all requests.
	guard *guard
	// logins delays further logins after failed ones; nil means no delay.
	logins *loginLimiter
}

// NewAuthorizer returns an authorizer for tests, without rate limits and metrics.
func NewAuthorizer(authenticator Authenticator) *Authorizer {
	return &Authorizer{Authenticator: authenticator}
}

// Require returns a middleware that accepts requests from clients with at least one of the roles. It stores the client's identity
// in the request context, for FromContext.
//
// The middleware responds with 403 to requests that browsers send on behalf of pages of other origins, 401 to missing or invalid
// credentials, 503 if the credentials cannot be verified, 403 to clients without any of the roles, and 429 if the client has
// exceeded its rate limit or must wait after failed logins. It checks the rate limit last: a request with a wrong password must
// not use up the rate limit of the named user.
func (a *Authorizer) Require(roles ...Role) httpserver.Middleware {
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if a.foreign(w, r) {
				return
			}

			var (
				identity  Identity
				err       error
				rejection *Rejection
				rejected  bool
			)

			if wait := a.logins.try(r, func() bool {
				identity, err = a.Authenticator.Authenticate(r)
				rejection, rejected = errors.AsType[*Rejection](err)

				return rejected
			}); wait > 0 {
				a.refuse(w, r, LoginDelayed, &httpserver.Refusal{
					Status: http.StatusTooManyRequests, Code: "TooManyRequests", Description: textLoginDelayed, RetryAfter: wait,
				})

				return
			}

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
					Status: http.StatusForbidden, Code: "Forbidden", Description: forbidden(roles),
				})
			default:
				a.limit(next, w, r.WithContext(NewContext(r.Context(), identity)))
			}
		})
	}
}

// forbidden returns the description of a 403 response. It names only the roles that the endpoint declares, and not the roles that
// include them: users should request the role with the fewest rights.
func forbidden(roles []Role) string {
	names := make([]string, 0, len(roles))
	for _, role := range roles {
		names = append(names, string(role))
	}

	return "The user lacks the " + strings.Join(names, " or ") + " role."
}

// Public is a middleware for endpoints without authentication. It checks the origin and the host, and applies the rate limit of
// the client's network.
func (a *Authorizer) Public(next http.Handler) http.Handler {
	return a.Guard(a.Limit(next))
}

// Guard is a middleware that checks the origin and the host like Require, but also accepts clients without credentials.
func (a *Authorizer) Guard(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !a.foreign(w, r) {
			next.ServeHTTP(w, r)
		}
	})
}

// Limit is a middleware that applies the rate limit of the client that the request context identifies. If it identifies none, the
// rate limit of the sender's network applies.
func (a *Authorizer) Limit(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { a.limit(next, w, r) })
}

// foreign responds with 403 and returns true if the origin or the host of the request is not accepted.
func (a *Authorizer) foreign(w http.ResponseWriter, r *http.Request) bool {
	reason, description := a.guard.check(r)
	if reason == "" {
		return false
	}

	a.refuse(w, r, reason, &httpserver.Refusal{Status: http.StatusForbidden, Code: "Forbidden", Description: description})

	return true
}

// PerAddress returns a middleware that limits the request rate of each network, regardless of the client. If limits is nil, there
// is no limit.
func (a *Authorizer) PerAddress(limits *Limiter) httpserver.Middleware {
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			a.pass(limits.Take(ClientNetwork(r.RemoteAddr)), next, w, r)
		})
	}
}

// limit passes the request to next, or responds with 429 if the client has exceeded its rate limit.
func (a *Authorizer) limit(next http.Handler, w http.ResponseWriter, r *http.Request) {
	a.pass(a.Limits.Take(clientOf(r)), next, w, r)
}

// pass passes the request to next if wait is 0. Otherwise it responds with 429 with the wait in Retry-After.
func (a *Authorizer) pass(wait time.Duration, next http.Handler, w http.ResponseWriter, r *http.Request) {
	if wait > 0 {
		a.refuse(w, r, RateLimited, &httpserver.Refusal{
			Status: http.StatusTooManyRequests, Code: "TooManyRequests", Description: textRateLimited, RetryAfter: wait,
		})

		return
	}

	next.ServeHTTP(w, r)
}

// clientOf returns the client's key in the rate limiter: its identity or, if it is unauthenticated, its network. The key includes
// the kind of credentials, because a user and a token with the same name are different clients.
func clientOf(r *http.Request) string {
	if identity := FromContext(r.Context()); identity.Name != "" {
		return string(identity.Means) + " " + identity.Name
	}

	return ClientNetwork(r.RemoteAddr)
}

// challenge responds with 401 with the authenticator's challenges. why becomes the description of the response.
func (a *Authorizer) challenge(w http.ResponseWriter, r *http.Request, why string) {
	if challenge := a.Authenticator.Challenge(); challenge != "" {
		w.Header().Set("WWW-Authenticate", challenge)
	}

	a.refuse(w, r, Unauthenticated, &httpserver.Refusal{
		Status: http.StatusUnauthorized, Code: "Unauthorized", Description: why,
	})
}

// refuse counts the rejection and sends the refusal in the common error response format.
func (a *Authorizer) refuse(w http.ResponseWriter, r *http.Request, reason string, refusal *httpserver.Refusal) {
	a.count(reason)

	httpserver.Endpoint(func(*http.Request) (httpserver.Response, error) { return httpserver.Response{}, refusal }).ServeHTTP(w, r)
}
