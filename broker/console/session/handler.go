package session

import (
	"net/http"
	"net/url"
	"path"
	"strings"
	"time"

	"github.com/sirupsen/logrus"
	"k8s.io/utils/clock"

	"github.com/environment-broker/environment-broker/broker/console/assets"
	"github.com/environment-broker/environment-broker/internal/audit"
	"github.com/environment-broker/environment-broker/internal/auth"
	"github.com/environment-broker/environment-broker/internal/httpserver"
	"github.com/environment-broker/environment-broker/internal/logging"
	"github.com/environment-broker/environment-broker/internal/secret"
	"github.com/environment-broker/environment-broker/storage"
	"github.com/environment-broker/environment-broker/storage/auditlog"
)

// The paths that this package serves. Assets need no login, because the login page uses them.
const (
	pathLogin    = "/console/login"
	pathOIDC     = pathLogin + "/oidc"
	pathCallback = pathLogin + "/callback"
	pathLogout   = "/console/logout"
)

const (
	// maxBody is the maximum size of a request body in bytes. requestLimit is the maximum duration of a request other than a stream.
	maxBody      = 64 << 10
	requestLimit = 40 * time.Second
	// loginRate is the number of times per second that an address may start or end a login at the issuer. loginBurst is the number
	// of times that it may do so at once.
	loginRate, loginBurst = 5, 50
)

const textNoOrigin = "The request has neither an Origin nor a Sec-Fetch-Site header. Use a current browser."

// Options are the dependencies of the sessions. All fields are required, except Metrics.
type Options struct {
	Config Config
	// Keys seal the cookies.
	Keys *secret.Keyring
	// Access contains the users who log in with passwords, the OIDC issuer, and the checks of origin, host and rate.
	Access *auth.Access
	// NameClaim is the claim with the name of a user. The operator API uses the same claim.
	NameClaim string
	// PublicURL is the address at which browsers reach the broker.
	PublicURL string
	Recorder  *audit.Recorder
	Clock     clock.PassiveClock
	Log       logrus.FieldLogger
	Metrics   *httpserver.Metrics
}

// Sessions logs users in and protects the pages. It is safe for concurrent use.
type Sessions struct {
	Options

	sessions, logins cookie
	issuer           *issuer
	limit            *auth.Limiter
}

// New returns the sessions, or an error for invalid settings. It does not call the issuer.
func New(options Options) (*Sessions, error) {
	made := &Sessions{
		Options:  options,
		sessions: cookie{name: "console-session", keys: options.Keys},
		logins:   cookie{name: "console-login", keys: options.Keys},
	}

	var err error
	if made.limit, err = auth.NewLimiter(loginRate, loginBurst, options.Clock); err != nil {
		return nil, err
	}

	if options.Config.OIDCClientID != "" && options.Access.Tokens != nil {
		made.issuer = newIssuer(options)
	}

	return made, nil
}

// secure reports whether browsers reach the console over TLS, so that cookies can be restricted to TLS.
func (s *Sessions) secure(r *http.Request) bool {
	return r.TLS != nil || strings.HasPrefix(s.PublicURL, "https://")
}

// Handler returns the handler for all paths of the console. Clients with the viewer role are served by console, and other users
// of the OIDC issuer by tenant. Other clients that are logged in get 403, and all others get the login page. Both handlers get
// the full path and serve their own 404 pages.
func (s *Sessions) Handler(console, tenant http.Handler) http.Handler {
	authorizer := s.Access.Authorizer
	external := func(serve http.HandlerFunc) http.Handler { return authorizer.PerAddress(s.limit)(serve) }
	pages, files := s.pages(authorizer.Limit(console), authorizer.Limit(tenant)), authorizer.Limit(assets.Handler())

	own := map[string]http.Handler{
		"GET " + pathLogin:    authorizer.Limit(http.HandlerFunc(s.showLogin)),
		"POST " + pathLogin:   authorizer.Limit(http.HandlerFunc(s.logIn)),
		"POST " + pathLogout:  http.HandlerFunc(s.logOut),
		"GET " + pathOIDC:     external(s.beginOIDC),
		"GET " + pathCallback: external(s.endOIDC),
	}

	return httpserver.Wrap(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		method := strings.Replace(r.Method, http.MethodHead, http.MethodGet, 1)

		switch handler, found := own[method+" "+r.URL.Path]; {
		case found:
			httpserver.NoteRoute(r.Context(), r.URL.Path)
			handler.ServeHTTP(w, r)
		case r.URL.Path+"/" == Home:
			http.Redirect(w, r, Home, http.StatusMovedPermanently)
		case strings.HasPrefix(r.URL.Path, assets.Prefix) && path.Clean(r.URL.Path) == r.URL.Path:
			files.ServeHTTP(w, r)
		default:
			pages.ServeHTTP(w, r)
		}
	}),
		httpserver.Observe(s.Log, s.Metrics, s.Clock),
		headers,
		httpserver.Deadline(requestLimit),
		httpserver.LimitBody(maxBody),
		audit.Introduce,
		s.Recorder.Refusals(target),
		authorizer.Guard,
		requireOrigin,
	)
}

// pages returns a handler that identifies the client and passes the request to console or to tenant.
func (s *Sessions) pages(console, tenant http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		identity, session, found := s.client(w, r)
		if !found {
			s.askForLogin(w, r)

			return
		}

		httpserver.Note(r.Context(), logging.User, identity.Name)

		r = r.WithContext(withSession(auth.Identified(r.Context(), identity), session))

		switch {
		case identity.Has(auth.RoleViewer):
			console.ServeHTTP(w, r)
		case identity.Means == auth.ByToken:
			tenant.ServeHTTP(w, r)
		default:
			s.page(w, r, http.StatusForbidden, loginPage{Problem: textNoRole, LogOut: session.CanLogOut})
		}
	})
}

// askForLogin responds to a request without a session: with a redirect to the login page if a browser opens a page, and otherwise
// with 401.
func (s *Sessions) askForLogin(w http.ResponseWriter, r *http.Request) {
	destination := r.Header.Get("Sec-Fetch-Dest")
	navigates := (r.Method == http.MethodGet || r.Method == http.MethodHead) && !automatic(r) && (destination == "" || destination == "document")

	if navigates {
		http.Redirect(w, r, loginFor(r), http.StatusSeeOther)

		return
	}

	s.page(w, r, http.StatusUnauthorized, loginPage{Problem: textEnded})
}

// requireOrigin is a middleware that rejects changes of unknown origin. Current browsers send Origin or Sec-Fetch-Site with each
// change, and the Authorizer has compared them with the origin of the service. The Authorizer accepts requests without both
// headers, because API clients send such requests. Only browsers send changes to the console, so requireOrigin rejects changes
// without both headers.
func requireOrigin(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		reads := r.Method == http.MethodGet || r.Method == http.MethodHead
		if !reads && r.Header.Get("Origin") == "" && r.Header.Get("Sec-Fetch-Site") == "" {
			http.Error(w, textNoOrigin, http.StatusForbidden)

			return
		}

		next.ServeHTTP(w, r)
	})
}

// target returns the action and the object of a request, for audit entries about rejected requests. The action of a change is the
// last path segment if it names an action of the console, and otherwise auditlog.ActionAccess. An ID that the database cannot store
// is left out. The pages record accepted changes themselves.
func target(r *http.Request) audit.Target {
	var found audit.Target

	segments := strings.Split(strings.TrimPrefix(r.URL.EscapedPath(), Home), "/")
	if len(segments) > 1 {
		id, err := url.PathUnescape(segments[1])

		switch {
		case err != nil || !storage.IsText(id):
		case segments[0] == "instances":
			found.InstanceID = id
		case segments[0] == "operations" || segments[0] == "orchestrations":
			found.OperationID = id
		}
	}

	if r.Method == http.MethodGet || r.Method == http.MethodHead {
		return found
	}

	found.Action = auditlog.ActionAccess

	switch last := segments[len(segments)-1]; last {
	case auditlog.ActionLogin, auditlog.ActionLogout, auditlog.ActionCancel, auditlog.ActionRetry,
		auditlog.ActionSkip, auditlog.ActionApply, auditlog.ActionPause,
		auditlog.ActionResume:
		found.Action = last
	}

	return found
}
