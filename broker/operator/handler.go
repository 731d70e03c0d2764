package operator

import (
	"context"
	"net/http"
	"time"

	"github.com/gorilla/mux"
	"github.com/sirupsen/logrus"
	"k8s.io/utils/clock"

	"github.com/environment-broker/environment-broker/broker/catalog"
	"github.com/environment-broker/environment-broker/internal/audit"
	"github.com/environment-broker/environment-broker/internal/auth"
	"github.com/environment-broker/environment-broker/internal/environment"
	"github.com/environment-broker/environment-broker/internal/httpserver"
	"github.com/environment-broker/environment-broker/internal/logging"
	"github.com/environment-broker/environment-broker/internal/secret"
	"github.com/environment-broker/environment-broker/internal/upstream"
	"github.com/environment-broker/environment-broker/storage"
	"github.com/environment-broker/environment-broker/storage/auditlog"
	"github.com/environment-broker/environment-broker/storage/bindings"
	"github.com/environment-broker/environment-broker/storage/instances"
	"github.com/environment-broker/environment-broker/storage/operations"
)

const (
	// largestBody is how long the body of a request may be, in bytes.
	largestBody = 64 << 10
	// requestLimit is how long a request may take; one for a kubeconfig goes to the Provisioner.
	requestLimit = 40 * time.Second
)

// Kubeconfigs makes kubeconfigs with every right in a runtime. Its errors are of package failure.
type Kubeconfigs interface {
	AdminKubeconfig(ctx context.Context, instance environment.Instance) (secret.String, error)
}

// Endpoints tells where the API server of a runtime is. Its errors are of package failure. It is asked by requests without
// credentials, so it has to bound what it costs.
type Endpoints interface {
	Endpoint(ctx context.Context, instance environment.Instance) (Endpoint, error)
}

// Expirer has an instance expire and returns the operation that removes its runtime, if there is one to remove. Its errors are of
// package failure.
type Expirer interface {
	Expire(ctx context.Context, instanceID, why string) (operationID string, err error)
}

// Endpoint is a cluster as the whole world may know it.
type Endpoint struct {
	// Server is the URL of the API server.
	Server string
	// CA is the certificate that it is checked by, as PEM.
	CA []byte
}

// OIDC is how users of runtimes log in. Without an issuer, kubeconfigs for users name none.
type OIDC struct {
	IssuerURL string
	ClientID  string
}

// Options is what the handler needs.
type Options struct {
	DB         *storage.DB
	Instances  *instances.Store
	Operations *operations.Store
	Bindings   *bindings.Store
	// Trail is where changes are written down, Entries what is in it.
	Trail   *audit.Recorder
	Entries *auditlog.Store
	// Authorizer checks the roles of users.
	Authorizer  *auth.Authorizer
	Clock       clock.PassiveClock
	Log         logrus.FieldLogger
	Kubeconfigs Kubeconfigs
	Endpoints   Endpoints
	OIDC        OIDC
	// Processes tells what may be done about operations.
	Processes Processes
	// Expirer has instances expire.
	Expirer Expirer
	// Wake has the engine look for due operations. It is called after a commit and must not block.
	Wake func()
	// Stages are the stages of the processes in order, by the kind of operation.
	Stages map[string][]string
	// Systems are the outside systems that operations may wait for, as this replica sees them.
	Systems []*upstream.System
	// Catalog is what platforms are offered.
	Catalog *catalog.Catalog
	// Otherwise answers every path outside of the operator API. Without it these do not exist.
	Otherwise http.Handler
}

// NewHandler returns the operator API.
func NewHandler(options Options) http.Handler {
	api := &api{Options: options}

	router := mux.NewRouter().UseEncodedPath().SkipClean(true)
	router.NotFoundHandler = httpserver.Endpoint(httpserver.NotFound)
	router.Use(httpserver.Trace)

	if options.Otherwise != nil {
		router.NotFoundHandler = options.Otherwise
	}

	for path, methods := range api.routes() {
		router.Handle(path, methods)
	}

	return httpserver.Wrap(router,
		httpserver.EchoRequestIdentity,
		httpserver.Log(options.Log, options.Clock),
		httpserver.Deadline(requestLimit),
		httpserver.LimitBody(largestBody),
	)
}

// api is what the endpoints share.
type api struct {
	Options
}

// routes are the paths of the API. A test holds them against openapi.yaml.
func (a *api) routes() map[string]httpserver.Methods {
	return map[string]httpserver.Methods{
		"/runtimes": {http.MethodGet: a.only(auth.RoleViewer, a.listRuntimes)},
		"/runtimes/{instance_id}/adminkubeconfig": {http.MethodPost: a.only(auth.RoleAdmin, a.adminKubeconfig)},
		"/audit":                                 {http.MethodGet: a.only(auth.RoleAdmin, a.listAudit)},
		"/runtimes/{instance_id}/bindings":       {http.MethodGet: a.only(auth.RoleViewer, a.listBindings)},
		"/operations":                            {http.MethodGet: a.only(auth.RoleViewer, a.listOperations)},
		"/operations/{operation_id}":             {http.MethodGet: a.only(auth.RoleViewer, a.getOperation)},
		"/operations/{operation_id}/cancel":      {http.MethodPost: a.only(auth.RoleOperator, a.intervene(auditlog.ActionCancel, "canceled", withoutStep(a.cancelOperation)))},
		"/operations/{operation_id}/retry":       {http.MethodPost: a.only(auth.RoleOperator, a.intervene(auditlog.ActionRetry, "retried", a.retryOperation))},
		"/operations/{operation_id}/skip":        {http.MethodPost: a.only(auth.RoleOperator, a.intervene(auditlog.ActionSkip, "made to skip a step", a.skipStep))},
		"/kubeconfig/{instance_id}":              {http.MethodGet: a.Authorizer.Public(coded(a.kubeconfig))},
		"/expire/service_instance/{instance_id}": {http.MethodPut: a.only(auth.RoleOperator, a.expire)},
		"/openapi.yaml":                          {http.MethodGet: a.Authorizer.Public(coded(describe))},
		"/catalog":                               {http.MethodGet: a.only(auth.RoleViewer, a.getCatalog)},
	}
}

// only lets users with the role pass.
func (a *api) only(role auth.Role, endpoint httpserver.Endpoint) http.Handler {
	return httpserver.Wrap(coded(endpoint), audit.Introduce, a.Trail.Refusals(targetOf), a.Authorizer.Require(role), identify)
}

// identify tells the log who makes the request.
func identify(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		httpserver.Note(r.Context(), logging.User, auth.FromContext(r.Context()).Name)
		next.ServeHTTP(w, r)
	})
}
