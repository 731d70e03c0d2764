package operator

import (
	"context"
	"net/http"
	"strings"
	"time"

	"github.com/sirupsen/logrus"
	"k8s.io/utils/clock"

	"github.com/environment-broker/environment-broker/broker/catalog"
	"github.com/environment-broker/environment-broker/broker/estimate"
	"github.com/environment-broker/environment-broker/broker/events"
	"github.com/environment-broker/environment-broker/broker/jobs"
	"github.com/environment-broker/environment-broker/broker/quota"
	"github.com/environment-broker/environment-broker/broker/upgrade"
	"github.com/environment-broker/environment-broker/internal/audit"
	"github.com/environment-broker/environment-broker/internal/auth"
	"github.com/environment-broker/environment-broker/internal/clients/webhook"
	"github.com/environment-broker/environment-broker/internal/environment"
	"github.com/environment-broker/environment-broker/internal/httpserver"
	"github.com/environment-broker/environment-broker/internal/operatorapi"
	"github.com/environment-broker/environment-broker/internal/operatorapi/operatorserver"
	"github.com/environment-broker/environment-broker/internal/program"
	"github.com/environment-broker/environment-broker/internal/secret"
	"github.com/environment-broker/environment-broker/internal/tracing"
	"github.com/environment-broker/environment-broker/internal/upstream"
	"github.com/environment-broker/environment-broker/process"
	"github.com/environment-broker/environment-broker/storage"
	"github.com/environment-broker/environment-broker/storage/auditlog"
	"github.com/environment-broker/environment-broker/storage/bindings"
	"github.com/environment-broker/environment-broker/storage/endpoints"
	"github.com/environment-broker/environment-broker/storage/eventlog"
	"github.com/environment-broker/environment-broker/storage/instanceevents"
	"github.com/environment-broker/environment-broker/storage/instances"
	"github.com/environment-broker/environment-broker/storage/leftovers"
	"github.com/environment-broker/environment-broker/storage/operations"
	"github.com/environment-broker/environment-broker/storage/orchestrations"
	"github.com/environment-broker/environment-broker/storage/outsideobjects"
	"github.com/environment-broker/environment-broker/storage/webhooks"
)

// kubeconfigPath is the path in openapi.yaml at which users get their kubeconfigs.
const kubeconfigPath = "/kubeconfig/{instance_id}"

const textNoInstance = "The instance does not exist."

// Kubeconfigs creates kubeconfigs with cluster-admin rights. Each call creates a new kubeconfig with an expiry; a
// kubeconfig cannot be revoked.
type Kubeconfigs interface {
	AdminKubeconfig(ctx context.Context, instance environment.Instance) (secret.String, error)
}

// Expirer expires an instance. It returns the ID of the operation that removes the runtime, or an empty ID if the
// instance has no runtime.
type Expirer interface {
	Expire(ctx context.Context, instanceID, why string) (operationID string, err error)
}

// Upgrader accepts upgrades of instances. Its errors carry a failure.Kind.
type Upgrader interface {
	Upgrade(ctx context.Context, order upgrade.Order) (upgrade.Accepted, error)
}

// Options are the dependencies of the API.
type Options struct {
	// DB is the database that all stores use, so one transaction can write to several stores.
	DB         *storage.DB
	Instances  *instances.Store
	Operations *operations.Store
	Bindings   *bindings.Store
	Leftovers  *leftovers.Store
	// Objects records the objects of instances in other systems, including objects that deletions have left there.
	Objects *outsideobjects.Store
	// Events stores instance events other than operations, such as renewals of credentials.
	Events *instanceevents.Store
	// EventLog stores the events of all instances, operations and orchestrations.
	EventLog *eventlog.Store
	// EventStreams serves the events as streams. PublicURL is the source attribute of the events.
	EventStreams *events.Streams
	PublicURL    string
	// Webhooks stores the receivers of events. SendWebhook sends a message to a receiver.
	Webhooks    *webhooks.Store
	SendWebhook func(ctx context.Context, message webhook.Message) error
	// CheckWebhookURL returns an error for a URL to which SendWebhook would refuse to send.
	CheckWebhookURL func(url string) error
	// Recorder writes accepted and rejected changes to the audit log. Entries reads the audit log.
	Recorder *audit.Recorder
	Entries  *auditlog.Store
	// Authorizer authenticates users and checks their roles.
	Authorizer *auth.Authorizer
	// Platforms returns the current platforms. Nil means that none are configured.
	Platforms func() auth.Platforms
	Clock     clock.PassiveClock
	// Log receives a line for each request and for each intervention. Metrics counts the requests; nil disables
	// counting.
	Log     logrus.FieldLogger
	Metrics *httpserver.Metrics
	// Tracing reports which operations have a trace. Nil means that tracing is disabled.
	Tracing *tracing.Tracing
	// Kubeconfigs creates the kubeconfigs for administrators. Endpoints stores the addresses in the kubeconfigs for users.
	Kubeconfigs Kubeconfigs
	Endpoints   *endpoints.Store
	// KubeconfigLogin requires a login for the kubeconfigs for users. KubeconfigLimit limits how often each client
	// address may request them; nil means no limit.
	KubeconfigLogin bool
	KubeconfigLimit *auth.Limiter
	// OIDC is the issuer at which users of runtimes log in, unless the runtime has another one. If it is empty,
	// kubeconfigs for users contain no user.
	OIDC environment.OIDC
	// Engine provides the kinds of operations that this broker runs, and the steps that may be skipped.
	Engine   *process.Engine[environment.Data]
	Expirer  Expirer
	Upgrader Upgrader
	// UpgradeSteps returns the names of the steps that an upgrade of the given kind runs for the instance, in order.
	UpgradeSteps func(kind string, instance environment.Instance) []string
	Shoots       ShootAdopter
	// DefaultRegion is the platform region of adopted Shoots if the request names none.
	DefaultRegion string
	Cleaner       Cleaner
	Jobs          jobs.Runner
	// Orchestrator accepts orchestrations. Orchestrations stores them.
	Orchestrator   Orchestrator
	Orchestrations *orchestrations.Store
	// Renewed lists the connected systems whose kubeconfigs the broker renews.
	Renewed []string
	// Pool is the account pool, or nil if none is configured.
	Pool AccountPool
	// Wake makes the engine look for due operations. It is called after a commit and must not block.
	Wake func()
	// Processes describes the processes of all kinds of operations.
	Processes []process.Description
	// Systems are the upstream systems. The API shows their state on this replica only, because each replica has its own circuit
	// breakers.
	Systems []*upstream.System
	// RangesLeftOpen reports whether Gardener chooses the ranges of pods and services; if so, the API does not show
	// them. Nil means that Gardener never chooses them.
	RangesLeftOpen func() bool
	// Estimator predicts the end of operations. Nil means no predictions.
	Estimator *estimate.Estimator
	// UserText returns the description of an operation in last_operation. Nil means that the API does not show it.
	UserText func(record process.Record, forecast process.Forecast, now time.Time) string
	// Quotas provides the quotas and their usage.
	Quotas quota.Checker
	// Differences compares the instances with the runtimes of the Provisioner.
	Differences operatorserver.Differences
	// Settings is the configuration of the service.
	Settings []program.Setting
	// Catalog is this replica's catalog. If changed files could not be loaded, the API also shows the error.
	Catalog *catalog.Catalog
}

// API implements the broker's routes in openapi.yaml. The console also calls the methods that take no *http.Request. These
// methods do not check roles, so the caller must. API is safe for concurrent use.
type API struct {
	Options
	*operatorserver.API
}

// NewHandler returns the handler of the operator API.
func NewHandler(options Options) http.Handler { return New(options).Handler() }

// New returns the operator API.
func New(options Options) *API {
	shared := operatorserver.New(operatorserver.Options{
		DB: options.DB, Operations: options.Operations, Recorder: options.Recorder, Entries: options.Entries,
		Authorizer: options.Authorizer, Clock: options.Clock, Log: options.Log, Metrics: options.Metrics, Tracing: options.Tracing,
		Engine: options.Engine, Subjects: subjects{options.Instances},
		Accounts: accounts{options.Instances, options.Leftovers, options.Objects, options.EventLog}, Differences: options.Differences,
		Wake: options.Wake, Processes: options.Processes, Systems: options.Systems,
		Settings: options.Settings,
		UserText: options.UserText,
		Percent: func(record process.Record, planID string) int {
			return options.Estimator.Forecast(record, planID, options.Clock.Now()).Percent
		},
		Forecast: func(ctx context.Context, record process.Record) process.Forecast {
			return options.Estimator.Forecast(record, options.planOf(ctx, record.InstanceID), options.Clock.Now())
		},
	})

	return &API{Options: options, API: shared}
}

// Route returns the route for an endpoint in openapi.yaml, such as "GET /runtimes". It panics if openapi.yaml does not define the
// endpoint.
func (a *API) Route(endpoint string) operatorserver.Route {
	method, path, _ := strings.Cut(endpoint, " ")

	return operatorserver.Find(operatorserver.BrokerRoutes(a), method, path)
}

// Handler returns the handler of the endpoints. It responds with 404 to other paths.
func (a *API) Handler() http.Handler {
	routes := operatorserver.BrokerRoutes(a)

	for i := range routes {
		routes[i].Form = routes[i].Path == retryPath

		if routes[i].Path != kubeconfigPath {
			continue
		}

		routes[i].PerAddress = a.KubeconfigLimit
		if a.KubeconfigLogin {
			routes[i].Role = string(auth.RoleViewer) // not osb, because the instance may belong to another platform
		}
	}

	return a.NewHandler(routes)
}

// GetCatalog handles GET /catalog.
func (a *API) GetCatalog(*http.Request) (httpserver.Response, error) {
	return httpserver.OK(a.CatalogReport()), nil
}

// CatalogReport returns the catalog of this replica and, if changed files could not be loaded, their error.
func (a *API) CatalogReport() operatorapi.Catalog {
	shown := operatorapi.Catalog{ETag: a.Catalog.Published().ETag, Plans: a.Catalog.Offered()}

	if problem := a.Catalog.Problem(); problem != nil {
		shown.Problem = operatorapi.CatalogProblem{Message: problem.Text, Since: problem.Since}
	}

	return shown
}

// planOf returns the plan ID of an instance, or an empty string if the instance is gone or cannot be read. For an empty plan ID,
// the forecast considers all plans.
func (o *Options) planOf(ctx context.Context, instanceID string) string {
	found, err := o.Instances.Summaries(ctx, []string{instanceID})
	if err != nil {
		return ""
	}

	return found[instanceID].PlanID
}
