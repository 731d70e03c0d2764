package service

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/sirupsen/logrus"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"

	"github.com/environment-broker/environment-broker/broker"
	"github.com/environment-broker/environment-broker/broker/estimate"
	"github.com/environment-broker/environment-broker/broker/events"
	"github.com/environment-broker/environment-broker/broker/feed"
	"github.com/environment-broker/environment-broker/broker/quota"
	"github.com/environment-broker/environment-broker/broker/refresh"
	"github.com/environment-broker/environment-broker/internal/audit"
	"github.com/environment-broker/environment-broker/internal/auth"
	"github.com/environment-broker/environment-broker/internal/clients/clusterclient"
	"github.com/environment-broker/environment-broker/internal/clients/provisionerclient"
	"github.com/environment-broker/environment-broker/internal/environment"
	"github.com/environment-broker/environment-broker/internal/failure"
	"github.com/environment-broker/environment-broker/internal/httpserver"
	"github.com/environment-broker/environment-broker/internal/program/lifecycle"
	"github.com/environment-broker/environment-broker/internal/program/replica"
	"github.com/environment-broker/environment-broker/internal/upstream"
	"github.com/environment-broker/environment-broker/internal/upstream/networks"
	"github.com/environment-broker/environment-broker/process"
	"github.com/environment-broker/environment-broker/process/telemetry"
	"github.com/environment-broker/environment-broker/storage"
	"github.com/environment-broker/environment-broker/storage/accounts"
	"github.com/environment-broker/environment-broker/storage/auditlog"
	"github.com/environment-broker/environment-broker/storage/bindings"
	"github.com/environment-broker/environment-broker/storage/endpoints"
	"github.com/environment-broker/environment-broker/storage/eventlog"
	"github.com/environment-broker/environment-broker/storage/instanceevents"
	"github.com/environment-broker/environment-broker/storage/instances"
	"github.com/environment-broker/environment-broker/storage/keyrotation"
	"github.com/environment-broker/environment-broker/storage/leftovers"
	"github.com/environment-broker/environment-broker/storage/notifications"
	"github.com/environment-broker/environment-broker/storage/operations"
	"github.com/environment-broker/environment-broker/storage/orchestrations"
	"github.com/environment-broker/environment-broker/storage/outsideobjects"
	"github.com/environment-broker/environment-broker/storage/reports"
	"github.com/environment-broker/environment-broker/storage/webhooks"
)

// Service is a broker that is ready to run: it listens on its addresses, and its database is open and migrated.
type Service struct {
	*replica.Replica

	// garden is the connection to Gardener, or nil to use the configured kubeconfig.
	garden *rest.Config
}

// New checks the configuration and assembles the service. It opens and migrates the database and listens on the
// addresses, but processes nothing before Run. Errors name the invalid variables. If Run is not called, the caller
// must call Close.
func New(ctx context.Context, config Config, log logrus.FieldLogger) (*Service, error) {
	return NewInGarden(ctx, config, nil, log)
}

// NewInGarden is New with a connection to Gardener that replaces the configured kubeconfig. The fake garden of the sandbox has no
// address that a kubeconfig could refer to.
func NewInGarden(ctx context.Context, config Config, garden *rest.Config, log logrus.FieldLogger) (*Service, error) {
	if err := config.Check(); err != nil {
		return nil, err
	}

	base, err := replica.New(ctx, "broker", config.Config, log)
	if err != nil {
		return nil, err
	}

	service := &Service{base, garden}
	if err := service.build(ctx, config); err != nil {
		return nil, errors.Join(err, service.Close())
	}

	return service, nil
}

// stores are the broker's tables. They share one database.
type stores struct {
	db             *storage.DB
	operations     *operations.Store
	instances      *instances.Store
	bindings       *bindings.Store
	entries        *auditlog.Store
	endpoints      *endpoints.Store
	reports        *reports.Store
	objects        *outsideobjects.Store
	events         *instanceevents.Store
	leftovers      *leftovers.Store
	accounts       *accounts.Store
	notifications  *notifications.Store
	eventLog       *eventlog.Store
	webhooks       *webhooks.Store
	orchestrations *orchestrations.Store
	// quotas checks how many instances tenants may have.
	quotas quota.Checker
	// audit is the background work of the audit log.
	audit []lifecycle.Part
}

// openStores opens the stores and migrates their tables. Replicas that start at the same time wait for each other.
func (s *Service) openStores(ctx context.Context, retention time.Duration, requests *httpserver.Load) (stores, error) {
	opened := stores{db: s.DB}

	var err error
	if opened.operations, err = operations.Open(ctx, s.DB, s.Keys); err != nil {
		return stores{}, err
	}

	opened.operations.KeepFor(retention)

	if opened.instances, err = instances.Open(ctx, s.DB, s.Keys); err != nil {
		return stores{}, err
	}

	if opened.bindings, err = bindings.Open(ctx, s.DB, s.Keys); err != nil {
		return stores{}, err
	}

	if opened.endpoints, err = endpoints.Open(ctx, s.DB, s.Keys); err != nil {
		return stores{}, err
	}

	if opened.reports, err = reports.Open(ctx, s.DB); err != nil {
		return stores{}, err
	}

	if opened.objects, err = outsideobjects.Open(ctx, s.DB, s.Keys); err != nil {
		return stores{}, err
	}

	if opened.events, err = instanceevents.Open(ctx, s.DB); err != nil {
		return stores{}, err
	}

	if opened.leftovers, err = leftovers.Open(ctx, s.DB); err != nil {
		return stores{}, err
	}

	if opened.accounts, err = accounts.Open(ctx, s.DB, clock.RealClock{}); err != nil {
		return stores{}, err
	}

	if opened.orchestrations, err = orchestrations.Open(ctx, s.DB, opened.operations); err != nil {
		return stores{}, err
	}

	if opened.eventLog, err = eventlog.Open(ctx, s.DB); err != nil {
		return stores{}, err
	}

	if opened.notifications, err = notifications.Open(ctx, s.DB); err != nil {
		return stores{}, err
	}

	if opened.webhooks, err = webhooks.Open(ctx, s.DB, s.Keys); err != nil {
		return stores{}, err
	}

	if opened.entries, err = auditlog.Open(ctx, s.DB, retention); err != nil {
		return stores{}, err
	}

	opened.audit, err = s.AuditParts("broker", opened.entries, opened.removal(), requests.Busy)

	return opened, err
}

// build connects the parts and hands them to the replica, which runs them. The parts are listed in the order of
// their start. They stop in reverse order, so each part can rely on the parts before it.
func (s *Service) build(ctx context.Context, config Config) error {
	requests := &httpserver.Load{}

	stores, err := s.openStores(ctx, config.AuditRetention, requests)
	if err != nil {
		return err
	}

	system := upstreamOf(config.Provisioner)

	provisioner, operatorAPI, err := provisionerClient(config.Provisioner, system, s.Access.Files)
	if err != nil {
		return err
	}

	plans, platforms, err := s.loadFiles(config, &stores)
	if err != nil {
		return err
	}

	s.Metrics().MustRegister(system, plans.Metric(), telemetry.Queue(stores.operations, clock.RealClock{}, s.Log))

	notifier := s.DB.NewNotifier(s.Log)

	// The feed wakes the engine, and the engine's processes use the feed. Declare the engine first to resolve the
	// cycle.
	var engine *process.Engine[environment.Data]

	follow := feed.New(provisioner, stores.operations, stores.instances, func() { engine.Wake() }, clock.RealClock{}, s.Log)

	access, limit, err := runtimeAccess(config, provisioner, stores.endpoints)
	if err != nil {
		return err
	}

	wake := func() {
		engine.Wake()
		notifier.Notify()
	}

	connected, err := s.connectUpstreams(config, stores, plans, access, wake)
	if err != nil {
		return err
	}

	conductor, publisher := s.conductor(stores, plans, wake), events.NewPublisher(stores.eventLog, clock.RealClock{}, s.Log)
	processes := s.processes(config, stores, connected, conductor, provisioner, access, follow)

	if engine, err = s.newEngine(config, stores.operations, processes, requests); err != nil {
		return err
	}

	recorder := audit.NewRecorder(stores.entries, s.DB, clock.RealClock{}, s.Log)
	expirer, estimator := stores.expirer(config.ExpirationPeriods, recorder, wake), estimate.New(stores.instances, stores.operations)
	cleaner, comparer := s.cleaner(stores, processes, recorder, wake), s.comparer(stores, connected, recorder, operatorAPI, access)

	// The jobs that remove bindings and instances need some options of the handler, and the operator API in the handler needs the
	// jobs. Therefore, set these options first.
	osb := broker.Options{
		DB: s.DB, Bindings: stores.bindings, Instances: stores.instances, Operations: stores.operations,
		Recorder: recorder, Wake: wake, Clock: clock.RealClock{},
	}
	runner := s.jobs(config, stores, connected, expirer, cleaner, osb)

	operators := s.operatorOptions(config, operated{
		stores: stores, connected: connected, provisioner: system, access: access, kubeconfigLimit: limit, plans: plans, platforms: platforms,
		recorder: recorder, processes: processes, engine: engine, follow: follow, wake: wake,
		expirer: expirer, shoots: stores.shoots(config, plans, provisioner, recorder), cleaner: cleaner, jobs: runner,
		estimator: estimator, comparer: comparer, streams: s.streams(config, stores, publisher, requests),
	})

	return s.serve(ctx, config, served{operators, connected.bundles}, requests, slices.Concat(stores.audit, connected.parts, runner.Parts(),
		s.retention(config, stores), s.refreshers(stores, access, provisioner), []lifecycle.Part{
			{Name: "notifier", Run: func(ctx context.Context) error { return notifier.Run(ctx, engine.Wake) }},
			watch(config, plans, recorder, s.Log),
			{Name: "feed", Run: follow.Run},
			s.rotation(),
			publisher.Part(),
			estimator.Part(clock.RealClock{}, s.Log),
			conductor.Part(clock.RealClock{}, s.Log),
			s.report(comparer, stores.reports, config.ReconcileInterval),
			s.repair(stores, access, config.BTPCheckInterval),
			s.recovery("the Provisioner", system, provisioner.Probe, stores, wake),
			{Name: "engine", Run: engine.Run, StopsEarly: true},
		})...)
}

// retention returns the lifecycle.Parts that remove old timelines and events.
func (s *Service) retention(config Config, stores stores) []lifecycle.Part {
	return []lifecycle.Part{
		stores.operations.Retention(config.Engine.TimelineRetention, clock.RealClock{}, s.Log).Part(),
		stores.events.Retention(config.Engine.TimelineRetention, clock.RealClock{}, s.Log).Part(),
		stores.eventLog.Retention(config.Events.Retention, clock.RealClock{}, s.Log).Part(),
	}
}

// streams returns the streams of events, and registers their metrics.
func (s *Service) streams(config Config, stores stores, publisher *events.Publisher, requests *httpserver.Load) *events.Streams {
	streams := events.NewStreams(events.StreamOptions{
		Reader: stores.eventLog, Publisher: publisher, Limit: config.Events.Streams, Uncounted: requests.Exclude, PublicURL: config.PublicURL,
		Clock: clock.RealClock{}, Log: s.Log,
	})
	s.Metrics().MustRegister(streams.Metric())

	return streams
}

// recovery returns the lifecycle.Part that probes an upstream system during an outage.
func (s *Service) recovery(title string, system *upstream.System, probe func(context.Context) error, stores stores, wake func()) lifecycle.Part {
	return lifecycle.Part{Name: "recovery of " + title, Run: upstream.Recovery{
		System: system, Probe: probe, Operations: stores.operations, Wake: wake, Clock: clock.RealClock{}, Log: s.Log,
	}.Run}
}

// runtimeAccess returns the client that calls runtimes and records their addresses, and the rate limiter for kubeconfig requests.
func runtimeAccess(config Config, provisioner *provisionerclient.Client, addresses *endpoints.Store) (clusterclient.Access, *auth.Limiter, error) {
	allowed, err := networks.Parse(config.OwnClusterNetworks)
	if err != nil {
		return clusterclient.Access{}, nil, fmt.Errorf("APP_OWN_CLUSTER_NETWORKS: %w", err)
	}

	limit, err := config.Kubeconfigs.limiter()
	if err != nil {
		return clusterclient.Access{}, nil, err
	}

	recorder := refresh.Recorder{Endpoints: addresses, Clock: clock.RealClock{}}

	return clusterclient.New(provisioner).Allowing(allowed).Recording(recorder), limit, nil
}

// newEngine returns the engine that runs the processes, with metrics and spans. The store notifies the engine of
// operations that are canceled while pending, because they end without running.
func (s *Service) newEngine(config Config, store *operations.Store, processes []process.Process[environment.Data], requests *httpserver.Load,
) (*process.Engine[environment.Data], error) {
	limits := config.Engine.Process()
	limits.Observer, limits.Tracer = telemetry.New(s.Metrics()), telemetry.NewTracer(s.Tracing)
	limits.Component = failure.ComponentBroker
	limits.Busy = requests.Busy

	engine, err := process.NewEngine(store, limits, clock.RealClock{}, s.Log, processes...)
	if err != nil {
		return nil, fmt.Errorf("assembling the engine: %w", err)
	}

	store.OnEnded(engine.Ended)

	return engine, nil
}

// refreshers returns the lifecycle.Parts that read missing and old addresses of clusters, and missing and old maintenance windows
// of Shoots.
func (s *Service) refreshers(stores stores, access clusterclient.Access, provisioner *provisionerclient.Client) []lifecycle.Part {
	addresses := &refresh.Refresher{
		DB: s.DB, Endpoints: stores.endpoints, Instances: stores.instances, Kubeconfigs: access, Clock: clock.RealClock{}, Log: s.Log,
	}
	windows := &refresh.Windows{
		DB: s.DB, Store: stores.orchestrations, Instances: stores.instances, Provisioner: provisioner, Clock: clock.RealClock{}, Log: s.Log,
	}

	return append(addresses.Parts(), windows.Parts()...)
}

// SealedColumns returns the sealed columns of the broker's database.
func SealedColumns() []storage.SealedColumn {
	return []storage.SealedColumn{operations.Sealed(), instances.Sealed(), bindings.Sealed(), endpoints.Sealed(), outsideobjects.Sealed(), webhooks.Sealed()}
}

// rotation returns the lifecycle.Part that re-encrypts all sealed columns when the first key changes.
func (s *Service) rotation() lifecycle.Part {
	return keyrotation.New(keyrotation.Options{
		DB: s.DB, Keys: s.Keys, Columns: SealedColumns(), Clock: clock.RealClock{}, Log: s.Log, Metrics: s.Metrics(),
	}).Part()
}
