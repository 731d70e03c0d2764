package broker

import (
	"context"
	"net/http"
	"strings"
	"time"

	"github.com/gorilla/mux"
	"github.com/sirupsen/logrus"
	"k8s.io/utils/clock"

	"github.com/environment-broker/environment-broker/broker/catalog"
	"github.com/environment-broker/environment-broker/broker/estimate"
	"github.com/environment-broker/environment-broker/broker/expiry"
	"github.com/environment-broker/environment-broker/broker/quota"
	"github.com/environment-broker/environment-broker/internal/audit"
	"github.com/environment-broker/environment-broker/internal/auth"
	"github.com/environment-broker/environment-broker/internal/environment"
	"github.com/environment-broker/environment-broker/internal/httpserver"
	"github.com/environment-broker/environment-broker/internal/logging"
	"github.com/environment-broker/environment-broker/storage"
	"github.com/environment-broker/environment-broker/storage/auditlog"
	"github.com/environment-broker/environment-broker/storage/bindings"
	"github.com/environment-broker/environment-broker/storage/instances"
	"github.com/environment-broker/environment-broker/storage/leftovers"
	"github.com/environment-broker/environment-broker/storage/operations"
	"github.com/environment-broker/environment-broker/storage/outsideobjects"
)

const (
	// largestBody is the maximum size of a request body, in bytes. The longest field is the kubeconfig of a cluster
	// that the tenant brings.
	largestBody = 1 << 20
	// requestLimit is the maximum duration of a request. A request reaches it only if the database is slow. Platforms
	// give up after a minute.
	requestLimit = 10 * time.Second
)

// Options are the dependencies and settings of the handler.
type Options struct {
	// DB is the database that all stores use. One transaction can write to several stores.
	DB         *storage.DB
	Instances  *instances.Store
	Operations *operations.Store
	Bindings   *bindings.Store
	Leftovers  *leftovers.Store
	Objects    *outsideobjects.Store
	Catalog    *catalog.Catalog
	// BindingLimit is the maximum number of unexpired bindings of an instance. It must be positive.
	BindingLimit int
	// UnbindWait is how long an asynchronous unbind waits for the end of the removal, so that it can be answered with
	// 200 instead of 202. Cloud Foundry deletes an instance only if all its bindings are gone, and does not poll
	// while it deletes them. With 0, an asynchronous unbind does not wait. More than syncLimit has no effect.
	UnbindWait time.Duration
	// Pause waits before the next poll of the operation that a synchronous request has started. It returns an error
	// when the context ends.
	Pause func(ctx context.Context) error
	// Wake makes the engine look for due operations. It is called after a commit and must not block.
	Wake  func()
	Clock clock.PassiveClock
	Log   logrus.FieldLogger
	// Metrics counts the requests by plan. If it is nil, requests are not counted.
	Metrics *httpserver.Metrics
	// Recorder writes to the audit log. The entries about operations on instances are stored with the operations instead.
	Recorder *audit.Recorder
	// Authorizer admits users with the osb role.
	Authorizer *auth.Authorizer
	// Platforms returns the current platforms. Nil means that no platforms are configured.
	Platforms func() auth.Platforms
	// DefaultRegion is the platform region of requests whose path contains no region.
	DefaultRegion string
	// Strict makes organization_guid and space_guid mandatory in orders.
	Strict bool
	// DashboardURL is the dashboard address of an instance, with the placeholder {instance_id}. If it is empty,
	// instances have no dashboard.
	DashboardURL string
	// PublicURL is the broker's address in links to kubeconfigs. If it is empty, there are no links.
	PublicURL string
	// RangesLeftOpen reports whether Gardener chooses the IP ranges of pods and services, because the Provisioner
	// cannot set them. If it is nil, Gardener never chooses them.
	RangesLeftOpen func() bool
	// Periods lists the plans whose instances can be suspended, with the lifetimes of these instances.
	Periods expiry.Periods
	// Quotas limits how many instances tenants may have. The zero value has no limits.
	Quotas quota.Checker
	// AccountMovement allows updates of the context that move an instance to another account.
	AccountMovement bool
	// UpgradeTimes stores the times that owners choose for upgrades. Nil means that no upgrade ever waits for an owner.
	UpgradeTimes UpgradeTimes
	// Estimator predicts when operations end. Nil means no predictions.
	Estimator *estimate.Estimator
	// Console serves /console and all paths below it. Nil means that the broker has no console.
	Console http.Handler
	// Otherwise serves all other paths outside of the Open Service Broker API. If it is nil, the response is 404.
	Otherwise http.Handler
}

// NewHandler returns the handler of the Open Service Broker API under its three path prefixes; it passes other paths to
// Options.Console and Options.Otherwise. The order of the middleware matters: rejected requests must be logged and audited, and no
// body may be read before authentication.
func NewHandler(options Options) http.Handler {
	if options.Platforms == nil {
		options.Platforms = func() auth.Platforms { return auth.Platforms{} }
	}

	osb := httpserver.Wrap((&api{Options: options}).router(),
		httpserver.EchoRequestIdentity,
		httpserver.Observe(options.Log, options.Metrics, options.Clock),
		httpserver.Deadline(requestLimit),
		audit.Introduce,
		options.Recorder.Refusals(auditTarget),
		options.Authorizer.Require(auth.RoleOSB),
		options.Authorizer.RequirePlatform(options.Platforms),
		identify,
		checkVersion,
		httpserver.LimitBody(largestBody),
	)

	otherwise := options.Otherwise
	if otherwise == nil {
		otherwise = httpserver.Wrap(httpserver.Endpoint(httpserver.NotFound),
			httpserver.EchoRequestIdentity, httpserver.Observe(options.Log, options.Metrics, options.Clock))
	}

	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch first, _, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/"); {
		case first == "v2" || first == "oauth":
			osb.ServeHTTP(w, r)
		case first == "console" && options.Console != nil:
			options.Console.ServeHTTP(w, r)
		default:
			otherwise.ServeHTTP(w, r)
		}
	})
}

// api implements the endpoints.
type api struct {
	Options
}

// router returns the routes. It matches paths before they are decoded, because an ID may contain an encoded slash.
func (a *api) router() http.Handler {
	const (
		instance = "/service_instances/{instance_id}"
		binding  = instance + "/service_bindings/{binding_id}"
	)

	paths := map[string]httpserver.Methods{
		"/catalog":                   {http.MethodGet: httpserver.Endpoint(a.getCatalog)},
		instance + "/last_operation": {http.MethodGet: a.read(a.pollInstance)},
		instance + "/validate":       {http.MethodPost: a.read(a.validate)},
		binding + "/last_operation":  {http.MethodGet: a.read(a.pollBinding)},
		instance: {
			http.MethodPut:    a.read(a.provision),
			http.MethodGet:    httpserver.Endpoint(a.fetch),
			http.MethodPatch:  repeatable(a.read(a.update)),
			http.MethodDelete: a.read(a.deprovision),
		},
		binding: {
			http.MethodPut:    a.read(a.bind),
			http.MethodGet:    a.read(a.fetchBinding),
			http.MethodDelete: a.read(a.unbind),
		},
	}

	router := mux.NewRouter().UseEncodedPath().SkipClean(true)
	router.NotFoundHandler = httpserver.Endpoint(httpserver.NotFound)
	router.Use(httpserver.Trace, a.checkRegion)

	for _, prefix := range []string{"/v2", "/oauth/v2", "/oauth/{region}/v2"} {
		for path, methods := range paths {
			router.Handle(prefix+path, methods)
		}
	}

	return router
}

// identify adds the authenticated user and the user of the originating identity to the log line of the request. The
// platform in the originating identity is not compared with context.platform, because platforms forward requests of
// other platforms.
func identify(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		actor := audit.ActorOf(r.Context())
		httpserver.Note(r.Context(), logging.User, actor.User)

		if actor.Originator != "" {
			httpserver.Note(r.Context(), logging.Originator, actor.Originator)
		}

		next.ServeHTTP(w, r)
	})
}

// auditTarget returns the action of a request and the IDs in its path. It runs before the router and reads only the
// method and the path, because the request may be unauthenticated. For requests that change nothing, the action is
// empty.
func auditTarget(r *http.Request) audit.Target {
	_, path, found := strings.Cut(r.URL.EscapedPath(), "/v2/service_instances/")
	if !found {
		return audit.Target{}
	}

	segments := strings.Split(path, "/")
	instanceID, _ := unescapeID(segments[0])
	target := audit.Target{InstanceID: instanceID}

	switch {
	case len(segments) == 1:
		target.Action = map[string]string{
			http.MethodPut: environment.KindProvision, http.MethodPatch: auditlog.ActionUpdate, http.MethodDelete: environment.KindDeprovision,
		}[r.Method]
	case len(segments) == 3 && segments[1] == "service_bindings":
		target.Action = map[string]string{http.MethodPut: auditlog.ActionBind, http.MethodDelete: auditlog.ActionUnbind}[r.Method]
		target.BindingID, _ = unescapeID(segments[2])
	}

	return target
}
