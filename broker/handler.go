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
	"github.com/environment-broker/environment-broker/broker/expiry"
	"github.com/environment-broker/environment-broker/internal/audit"
	"github.com/environment-broker/environment-broker/internal/auth"
	"github.com/environment-broker/environment-broker/internal/httpserver"
	"github.com/environment-broker/environment-broker/storage"
	"github.com/environment-broker/environment-broker/storage/bindings"
	"github.com/environment-broker/environment-broker/storage/instances"
	"github.com/environment-broker/environment-broker/storage/operations"
)

const (
	// largestBody is how long the body of a request may be, in bytes.
	largestBody = 1 << 20
	// requestLimit is how long a request may take: one that needs longer meets a database in trouble. Platforms give up after a minute.
	requestLimit = 10 * time.Second
)

// Options is what the handler needs.
type Options struct {
	DB         *storage.DB
	Instances  *instances.Store
	Operations *operations.Store
	Bindings   *bindings.Store
	Catalog    *catalog.Catalog
	// BindingLimit is how many bindings an instance may have at the same time.
	BindingLimit int
	// Pause lets a moment pass between two looks at an operation that a request waits for. It fails when the context ends.
	Pause func(ctx context.Context) error
	// Wake has the engine look for due operations. It is called after a commit and must not block.
	Wake  func()
	Clock clock.PassiveClock
	Log   logrus.FieldLogger
	// Trail is told of changes that are refused.
	Trail *audit.Recorder
	// Gate lets in who has the role osb.
	Gate *auth.Gate
	// DefaultRegion is the platform's region of requests whose path names none.
	DefaultRegion string
	// Strict insists on organization_guid and space_guid.
	Strict bool
	// DashboardURL is the address of an instance's dashboard, with {instance_id} in it. Without it there is no dashboard.
	DashboardURL string
	// PublicURL is how users reach the broker, for links to kubeconfigs. Without it there are no such links.
	PublicURL string
	// RangesLeftOpen reports whether the Provisioner cannot be told the ranges of pods and services, so that Gardener chooses them; nil for never.
	RangesLeftOpen func() bool
	// Periods tell which plans may be suspended, and when their instances expire.
	Periods expiry.Periods
	// AccountMovement lets instances move to another account, by an update of their context.
	AccountMovement bool
	// Otherwise answers every path outside of the Open Service Broker API. Without it these do not exist.
	Otherwise http.Handler
}

// NewHandler returns the Open Service Broker API under its three path forms.
func NewHandler(options Options) http.Handler {
	osb := httpserver.Wrap(newAPI(options).router(),
		httpserver.Echo,
		httpserver.Log(options.Log, options.Clock),
		httpserver.Deadline(requestLimit),
		audit.Introduce,
		options.Trail.Refusals(targetOf),
		options.Gate.Require(auth.RoleOSB),
		identify,
		checkVersion,
		httpserver.Limit(largestBody),
	)

	otherwise := options.Otherwise
	if otherwise == nil {
		otherwise = httpserver.Wrap(httpserver.Endpoint(httpserver.NotFound), httpserver.Echo, httpserver.Log(options.Log, options.Clock))
	}

	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		first, _, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
		if first == "v2" || first == "oauth" {
			osb.ServeHTTP(w, r)
		} else {
			otherwise.ServeHTTP(w, r)
		}
	})
}

// api is what the endpoints share.
type api struct {
	Options
}

func newAPI(options Options) *api { return &api{Options: options} }

// router knows every path. Paths are matched as they were sent: an id may hold an encoded slash.
func (a *api) router() http.Handler {
	const (
		instance = "/service_instances/{instance_id}"
		binding  = instance + "/service_bindings/{binding_id}"
	)

	paths := map[string]httpserver.Methods{
		"/catalog":                   {http.MethodGet: httpserver.Endpoint(a.getCatalog)},
		instance + "/last_operation": {http.MethodGet: httpserver.Endpoint(a.lastOperation)},
		instance + "/validate":       {http.MethodPost: httpserver.Endpoint(a.validate)},
		binding + "/last_operation":  {http.MethodGet: httpserver.Endpoint(a.lastBindingOperation)},
		instance: {
			http.MethodPut:    httpserver.Endpoint(a.provision),
			http.MethodGet:    httpserver.Endpoint(a.fetch),
			http.MethodPatch:  httpserver.Endpoint(a.update),
			http.MethodDelete: httpserver.Endpoint(a.deprovision),
		},
		binding: {
			http.MethodPut:    httpserver.Endpoint(a.bind),
			http.MethodGet:    httpserver.Endpoint(a.fetchBinding),
			http.MethodDelete: httpserver.Endpoint(a.unbind),
		},
	}

	router := mux.NewRouter().UseEncodedPath().SkipClean(true)
	router.NotFoundHandler = httpserver.Endpoint(httpserver.NotFound)
	router.Use(httpserver.Traced)

	for _, prefix := range []string{"/v2", "/oauth/v2", "/oauth/{region}/v2"} {
		for path, methods := range paths {
			router.Handle(prefix+path, methods)
		}
	}

	return router
}
