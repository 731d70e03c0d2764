package operator

import (
	"context"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/gorilla/mux"
	"github.com/sirupsen/logrus"
	"k8s.io/utils/clock"

	"github.com/environment-broker/environment-broker/broker/catalog"
	"github.com/environment-broker/environment-broker/broker/estimate"
	"github.com/environment-broker/environment-broker/internal/audit"
	"github.com/environment-broker/environment-broker/internal/auth"
	"github.com/environment-broker/environment-broker/internal/environment"
	"github.com/environment-broker/environment-broker/internal/httpserver"
	"github.com/environment-broker/environment-broker/internal/logging"
	"github.com/environment-broker/environment-broker/internal/operatorapi"
	"github.com/environment-broker/environment-broker/internal/secret"
	"github.com/environment-broker/environment-broker/internal/tracing"
	"github.com/environment-broker/environment-broker/internal/upstream"
	"github.com/environment-broker/environment-broker/process"
	"github.com/environment-broker/environment-broker/storage"
	"github.com/environment-broker/environment-broker/storage/auditlog"
	"github.com/environment-broker/environment-broker/storage/bindings"
	"github.com/environment-broker/environment-broker/storage/instances"
	"github.com/environment-broker/environment-broker/storage/operations"
)

const (
	// maxBody is the maximum size of a request body, in bytes.
	maxBody = 64 << 10
	// requestLimit is the maximum duration of a request. It is long because requests for kubeconfigs call the
	// Provisioner.
	requestLimit = 40 * time.Second
	// roleNone is the value of x-role for routes that need no credentials.
	roleNone = "none"

	textNoInstance = "The instance does not exist."
)

// Kubeconfigs creates kubeconfigs with cluster-admin rights. Its errors are of package failure. Each call creates a
// new kubeconfig with an expiry; a kubeconfig cannot be revoked.
type Kubeconfigs interface {
	AdminKubeconfig(ctx context.Context, instance environment.Instance) (secret.String, error)
}

// Expirer expires an instance. It returns the ID of the operation that removes the runtime, or an empty ID if the
// instance has no runtime. Its errors are of package failure.
type Expirer interface {
	Expire(ctx context.Context, instanceID, why string) (operationID string, err error)
}

// Options are the dependencies of the handler.
type Options struct {
	// DB is the database of the stores. One transaction can write to several of them.
	DB         *storage.DB
	Instances  *instances.Store
	Operations *operations.Store
	Bindings   *bindings.Store
	// Recorder writes accepted and rejected changes to the audit log. Entries reads the audit log.
	Recorder *audit.Recorder
	Entries  *auditlog.Store
	// Authorizer authenticates users and checks their roles.
	Authorizer *auth.Authorizer
	Clock      clock.PassiveClock
	// Log receives a line for each request and for each intervention. Metrics counts the requests; nil disables
	// counting.
	Log     logrus.FieldLogger
	Metrics *httpserver.Metrics
	// Tracing knows which operations have a trace. Nil means that tracing is disabled.
	Tracing *tracing.Tracing
	// Kubeconfigs creates the kubeconfigs for administrators. The kubeconfigs for users contain the address of the
	// API server from an administrator's kubeconfig, but not its credentials.
	Kubeconfigs Kubeconfigs
	// OIDC is the issuer at which users of runtimes log in, unless the runtime has another one. If it is empty,
	// kubeconfigs for users contain no user.
	OIDC environment.OIDC
	// Engine knows the kinds of operations that this broker runs, and the steps that may be skipped.
	Engine  *process.Engine[environment.Data]
	Expirer Expirer
	// Wake makes the engine look for due operations. It is called after a commit and must not block.
	Wake func()
	// Stages maps the kinds of operations to their stages, in order.
	Stages map[string][]string
	// Systems are the upstream systems. Their state is that of this replica, because each replica has separate
	// circuit breakers.
	Systems []*upstream.System
	// RangesLeftOpen reports whether Gardener chooses the ranges of pods and services, which are then not shown.
	// Nil means that it does not.
	RangesLeftOpen func() bool
	// Estimator predicts the end of operations. Nil means no predictions.
	Estimator *estimate.Estimator
	// Catalog is the catalog of this replica. The API also shows the error of changed files that could not be
	// loaded.
	Catalog *catalog.Catalog
}

// api implements the routes of openapi.yaml.
type api struct {
	Options

	endpoints *cachedEndpoints
}

// NewHandler returns the handler of the operator API. It responds with 404 to other paths.
func NewHandler(options Options) http.Handler {
	api := &api{Options: options, endpoints: newCachedEndpoints(options.Kubeconfigs, options.Clock)}

	router := mux.NewRouter().UseEncodedPath().SkipClean(true)
	router.NotFoundHandler = httpserver.Endpoint(httpserver.NotFound)
	router.Use(httpserver.Trace)

	paths := map[string]httpserver.Methods{}

	for _, route := range routes(api) {
		if paths[route.path] == nil {
			paths[route.path] = httpserver.Methods{}
			router.Handle(route.path, paths[route.path])
		}

		paths[route.path][route.method] = api.guarded(route)
	}

	return httpserver.Wrap(router,
		httpserver.EchoRequestIdentity,
		httpserver.Observe(options.Log, options.Metrics, options.Clock),
		httpserver.Deadline(requestLimit),
		httpserver.LimitBody(maxBody),
	)
}

// guarded returns the endpoint of the route, protected by a check of the role. The middleware of the audit log runs
// before the check, because it records rejected requests.
func (a *api) guarded(route route) http.Handler {
	endpoint := withCode(route.serve)
	if route.role == roleNone {
		return a.Authorizer.Public(endpoint)
	}

	return httpserver.Wrap(endpoint,
		audit.Introduce, a.Recorder.Refusals(targetOf), a.Authorizer.Require(auth.Role(route.role)), logUser)
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

// invalid rejects a malformed request. The description names the part of the request that the user has to correct.
func invalid(description string) error { return httpserver.Refuse(http.StatusBadRequest, description) }

// conflict rejects a valid request because of the state of the operation or of the instance.
func conflict(description string) error { return httpserver.Refuse(http.StatusConflict, description) }

func notFound(description string) error { return httpserver.Refuse(http.StatusNotFound, description) }

// segment returns a decoded parameter of the path.
func segment(r *http.Request, name string) (string, error) {
	value, err := url.PathUnescape(mux.Vars(r)[name])
	if err != nil || !storage.IsText(value) {
		return "", invalid("The path is not valid UTF-8.")
	}

	return value, nil
}

// getDescription returns openapi.yaml. Clients can be generated from it.
func (a *api) getDescription(*http.Request) (httpserver.Response, error) {
	return httpserver.Response{
		Status: http.StatusOK, Body: operatorapi.Description, Header: http.Header{"Content-Type": {"application/yaml"}},
	}, nil
}

// getCatalog returns the catalog of this replica and, if changed files could not be loaded, their error.
func (a *api) getCatalog(*http.Request) (httpserver.Response, error) {
	shown := operatorapi.Catalog{ETag: a.Catalog.Published().ETag, Plans: a.Catalog.Offered()}

	if problem := a.Catalog.Problem(); problem != nil {
		shown.Problem = operatorapi.CatalogProblem{Message: problem.Text, Since: problem.Since}
	}

	return httpserver.OK(shown), nil
}
