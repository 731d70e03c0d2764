package operatorserver

import (
	"context"
	"fmt"
	"mime"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/gorilla/mux"
	"github.com/sirupsen/logrus"
	"k8s.io/utils/clock"

	"github.com/environment-broker/environment-broker/internal/audit"
	"github.com/environment-broker/environment-broker/internal/auth"
	"github.com/environment-broker/environment-broker/internal/httpserver"
	"github.com/environment-broker/environment-broker/internal/httpserver/bounds"
	"github.com/environment-broker/environment-broker/internal/logging"
	"github.com/environment-broker/environment-broker/internal/operatorapi"
	"github.com/environment-broker/environment-broker/internal/program"
	"github.com/environment-broker/environment-broker/internal/tracing"
	"github.com/environment-broker/environment-broker/internal/upstream"
	"github.com/environment-broker/environment-broker/process"
	"github.com/environment-broker/environment-broker/storage"
	"github.com/environment-broker/environment-broker/storage/auditlog"
	"github.com/environment-broker/environment-broker/storage/operations"
)

const (
	// maxBody is the maximum size of a request body, in bytes.
	maxBody = 64 << 10
	// requestLimit is the maximum duration of a request. It is long because requests for kubeconfigs call the
	// Provisioner.
	requestLimit = 40 * time.Second
	// RoleNone is the x-role value of routes that need no credentials.
	RoleNone = "none"

	textNoJSON = "The body must be JSON: send a Content-Type header with the value application/json."
)

// Engine is the part of *process.Engine that the API uses.
type Engine interface {
	// Handles reports whether the service runs operations of the given kind.
	Handles(kind string) bool
	// MaySkip reports whether operations of the given kind can continue without the step, because no later step depends on it.
	MaySkip(kind, step string) bool
	// Successor returns a new operation with the given ID that retries former, an ended operation.
	Successor(former process.Record, id string, at time.Time) process.New
}

// Subject describes an instance or a runtime. PlanID is empty in the Provisioner.
type Subject struct{ Name, PlanID string }

// Subjects describes and locks the objects that the service's operations change: instances and bindings in the broker, runtimes
// in the Provisioner.
type Subjects interface {
	// Noun returns the word for such an object in messages for people, such as "instance".
	Noun() string
	// Kinds lists all kinds of operations that the service accepts.
	Kinds() []string
	// IDs returns the ID of the operation's instance and, for an operation on a binding, the ID of the binding.
	IDs(record process.Record) (instanceID, bindingID string)
	// Describe returns the names and plans of the instances, keyed by ID. IDs without an instance are absent.
	Describe(ctx context.Context, ids []string) (map[string]Subject, error)
	// Lock locks the instance until the transaction ends, so that no other operation of the instance is accepted. It reports
	// whether the instance exists.
	Lock(ctx context.Context, tx storage.Tx, record process.Record, now time.Time) (exists bool, err error)
	// Refresh returns a retry with the values that depend on the current state of the instance, which the caller has locked. It
	// returns an error, whose kind is failure.Conflict, if the retry would undo a later change of the instance.
	Refresh(ctx context.Context, tx storage.Tx, retry process.New) (process.New, error)
	// Select adds the query parameters that only this service supports to the filter for a list of operations. The filter already
	// contains the instance ID.
	Select(query url.Values, filter *operations.Filter) error
}

// Options are the dependencies of the API.
type Options struct {
	// DB is the database that all stores share, so that one transaction can write to several stores.
	DB         *storage.DB
	Operations *operations.Store
	// Recorder writes accepted and rejected changes to the audit log. Entries reads the log.
	Recorder *audit.Recorder
	Entries  *auditlog.Store
	// Authorizer authenticates users and checks their roles.
	Authorizer *auth.Authorizer
	Clock      clock.PassiveClock
	// Log receives a line for each request and for each intervention. Metrics counts the requests; if it is nil, requests are not
	// counted.
	Log     logrus.FieldLogger
	Metrics *httpserver.Metrics
	// Tracing decides which operations have a trace. Nil means that tracing is off.
	Tracing  *tracing.Tracing
	Engine   Engine
	Subjects Subjects
	Accounts Accounts
	// Differences compares the service with the systems behind it.
	Differences Differences
	// Wake makes the engine look for due operations. It is called after a commit and must not block.
	Wake func()
	// Processes describes the processes of all kinds of operations.
	Processes []process.Description
	// Systems are the upstream systems. The API reports their state as this replica sees it, because each replica has its own
	// circuit breakers.
	Systems []*upstream.System
	// Settings is the configuration of the service.
	Settings []program.Setting
	// Percent returns how much of an operation is done, in percent, for lists of operations. It must agree with Forecast. An
	// empty planID means that the operation has no instance, or that the instance does not exist. Nil means that percentages are
	// unknown.
	Percent func(record process.Record, planID string) int
	// Forecast predicts the end of an operation. Nil means no predictions.
	Forecast func(ctx context.Context, record process.Record) process.Forecast
	// UserText returns the text that the platform shows to its users about an operation. Nil means that operations have no such text.
	UserText func(record process.Record, forecast process.Forecast, now time.Time) string
}

// API implements the endpoints that the broker and the Provisioner share. It is safe for concurrent use.
type API struct {
	Options

	// stages lists the stages of each kind of operation in order.
	stages map[string][]string
}

// New returns an API with the given dependencies.
func New(options Options) *API {
	stages := map[string][]string{}
	for _, described := range options.Processes {
		stages[described.Kind] = described.Stages()
	}

	return &API{Options: options, stages: stages}
}

// Route is an endpoint of the operator API.
type Route struct {
	Method, Path string
	// Role is the role that the user needs, or RoleNone.
	Role string
	// PerAddress limits the requests of each address, in addition to the limit for each client. Nil means no additional limit.
	PerAddress *auth.Limiter
	// Form reports whether the route accepts forms in addition to JSON.
	Form bool

	// Query lists the names of the accepted query parameters.
	Query []string

	// serve handles the requests of the route. If the route has query parameters, list handles them instead.
	serve httpserver.Endpoint
	list  func(r *http.Request, query Query) (httpserver.Response, error)
}

// Find returns the route with the given method and path, as written in openapi.yaml. Other interfaces, such as the console, use
// it to require the same roles and to accept the same parameters. Find panics if the route does not exist.
func Find(routes []Route, method, path string) Route {
	for _, route := range routes {
		if route.Method == method && route.Path == path {
			return route
		}
	}

	panic("no route " + method + " " + path)
}

// NewHandler returns a handler for the routes. It responds with 404 to requests for other paths, and with 405 to other methods on
// the paths of the routes.
func (a *API) NewHandler(routes []Route) http.Handler {
	router := mux.NewRouter().UseEncodedPath().SkipClean(true)
	router.NotFoundHandler = httpserver.Endpoint(httpserver.NotFound)
	router.Use(httpserver.Trace)

	paths := map[string]httpserver.Methods{}

	for _, route := range routes {
		if paths[route.Path] == nil {
			paths[route.Path] = httpserver.Methods{}
			router.Handle(route.Path, paths[route.Path])
		}

		paths[route.Path][route.Method] = a.guarded(route)
	}

	return httpserver.Wrap(router,
		httpserver.EchoRequestIdentity,
		httpserver.Observe(a.Log, a.Metrics, a.Clock),
		httpserver.Deadline(requestLimit),
		httpserver.LimitBody(maxBody),
	)
}

// guarded returns the endpoint of the route, protected by a check of the role. The audit log middleware runs before the check,
// because it records rejected requests.
func (a *API) guarded(route Route) http.Handler {
	endpoint := withCode(route.serve)
	if route.list != nil {
		endpoint = withCode(withQuery(route.list, route.Query...))
	}

	perAddress := a.Authorizer.PerAddress(route.PerAddress)
	if route.Role == RoleNone {
		return httpserver.Wrap(endpoint, perAddress, a.Authorizer.Public)
	}

	return httpserver.Wrap(endpoint, perAddress,
		audit.Introduce, a.Recorder.Refusals(targetOf), a.Authorizer.Require(auth.Role(route.Role)), logUser, requireJSON(route.Form))
}

// MediaForm is the content type of forms.
const MediaForm = "application/x-www-form-urlencoded"

// requireJSON is a middleware that rejects a body whose content type is not application/json. This prevents cross-site requests:
// a page from another origin can make a browser send a form without a CORS preflight, but not JSON. If form is set, forms are
// accepted too, because the service itself rejects forms from other origins.
func requireJSON(form bool) func(next http.Handler) http.Handler {
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			media, _, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
			allowed := media == "application/json" || form && media == MediaForm

			if r.ContentLength == 0 || err == nil && allowed {
				next.ServeHTTP(w, r)

				return
			}

			withCode(func(*http.Request) (httpserver.Response, error) {
				return httpserver.Response{}, httpserver.Refuse(http.StatusUnsupportedMediaType, textNoJSON)
			}).ServeHTTP(w, r)
		})
	}
}

// logUser adds the authenticated user to the log line of the request.
func logUser(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		httpserver.Note(r.Context(), logging.User, auth.FromContext(r.Context()).Name)
		next.ServeHTTP(w, r)
	})
}

// withCode adds an error code to refusals that have none: the name of the status, such as NotFound.
func withCode(endpoint httpserver.Endpoint) httpserver.Endpoint {
	return func(r *http.Request) (httpserver.Response, error) {
		response, err := endpoint(r)
		if err == nil {
			return response, nil
		}

		refusal := *httpserver.RefusalOf(err)
		if refusal.Code == "" {
			refusal.Code = strings.ReplaceAll(http.StatusText(refusal.Status), " ", "")
		}

		return httpserver.Response{}, &refusal
	}
}

// Invalid returns the error for a malformed request, with status 400. The description names the part of the request that the
// user has to correct.
func Invalid(description string) error { return httpserver.Refuse(http.StatusBadRequest, description) }

// Unknown returns the error for a value that is not one of the known ones, with status 400. what names the value in the description, such
// as "state".
func Unknown[T ~string](what string, value T, known []T) error {
	names := make([]string, 0, len(known))
	for _, each := range known {
		names = append(names, string(each))
	}

	return Invalid(fmt.Sprintf("The %s %q is unknown. Use one of: %s.", what, value, strings.Join(names, ", ")))
}

// Conflict returns the error, with status 409, for a valid request that the state of the operation or the instance does not
// allow.
func Conflict(description string) error { return httpserver.Refuse(http.StatusConflict, description) }

// NotFound returns the error for a request about an object that does not exist, with status 404.
func NotFound(description string) error { return httpserver.Refuse(http.StatusNotFound, description) }

// Segment returns the percent-decoded value of a path variable. A value that is not valid UTF-8, contains a
// NUL character or is longer than any ID is rejected with 400.
func Segment(r *http.Request, name string) (string, error) {
	value, err := url.PathUnescape(mux.Vars(r)[name])
	if err != nil || !storage.IsText(value) {
		return "", Invalid("The path is not valid UTF-8 or contains a NUL character.")
	}

	if len(value) > bounds.ID {
		return "", Invalid(fmt.Sprintf("IDs have at most %d bytes.", bounds.ID))
	}

	return value, nil
}

// GetDescription returns openapi.yaml. Clients can be generated from it.
func (a *API) GetDescription(*http.Request) (httpserver.Response, error) {
	return httpserver.Response{
		Status: http.StatusOK, Body: operatorapi.Description, Header: http.Header{"Content-Type": {"application/yaml"}},
	}, nil
}
