package service

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"github.com/sirupsen/logrus"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/environment-broker/environment-broker/internal/audit"
	"github.com/environment-broker/environment-broker/internal/auth"
	"github.com/environment-broker/environment-broker/internal/failure"
	"github.com/environment-broker/environment-broker/internal/httpserver"
	"github.com/environment-broker/environment-broker/internal/httpserver/bounds"
	"github.com/environment-broker/environment-broker/internal/operatorapi/operatorserver"
	"github.com/environment-broker/environment-broker/internal/program"
	"github.com/environment-broker/environment-broker/internal/program/lifecycle"
	"github.com/environment-broker/environment-broker/internal/program/replica"
	"github.com/environment-broker/environment-broker/internal/upstream"
	"github.com/environment-broker/environment-broker/process"
	"github.com/environment-broker/environment-broker/process/telemetry"
	"github.com/environment-broker/environment-broker/provisioner/clusteraccess"
	"github.com/environment-broker/environment-broker/provisioner/director"
	"github.com/environment-broker/environment-broker/provisioner/gardener"
	"github.com/environment-broker/environment-broker/provisioner/graph"
	"github.com/environment-broker/environment-broker/provisioner/operation"
	"github.com/environment-broker/environment-broker/provisioner/operator"
	"github.com/environment-broker/environment-broker/provisioner/orders"
	"github.com/environment-broker/environment-broker/provisioner/reconcile"
	"github.com/environment-broker/environment-broker/provisioner/spec"
	"github.com/environment-broker/environment-broker/provisioner/validation"
	"github.com/environment-broker/environment-broker/storage"
	"github.com/environment-broker/environment-broker/storage/auditlog"
	"github.com/environment-broker/environment-broker/storage/keyrotation"
	"github.com/environment-broker/environment-broker/storage/operations"
	"github.com/environment-broker/environment-broker/storage/runtimes"
)

// Service is a Provisioner that is ready to run: its addresses are bound, and its database is open and migrated.
type Service struct {
	*replica.Replica
}

// New checks the configuration, builds the service and binds its addresses. Run, a method of the embedded Replica, serves until its
// context ends. If garden is nil, the service connects to the configured Gardener; tests and the sandbox pass a fake garden. New makes no
// call to Gardener, Director or the release registry, so a replica can start during an outage of any of them. Its error names the
// variables that are invalid or missing.
func New(ctx context.Context, config Config, garden client.WithWatch, log logrus.FieldLogger) (*Service, error) {
	err := errors.Join(config.check(), config.missing(garden == nil))
	if err != nil {
		return nil, err
	}

	if text := config.unregistered(); text != "" {
		log.Warn(text)
	}

	files, err := readShootFiles(config.Gardener.Shoots)
	if err != nil {
		return nil, err
	}

	base, err := replica.New(ctx, "provisioner", config.Config, log)
	if err != nil {
		return nil, err
	}

	service := &assembly{Replica: base, config: config, parts: Parts{Files: files}}
	if err := service.build(ctx, garden); err != nil {
		return nil, errors.Join(err, base.Close())
	}

	return &Service{base}, nil
}

// largestAnswer is the maximum size of a response from Gardener, in bytes. A list of ten thousand Shoots is smaller.
const largestAnswer = 512 << 20

// assembly contains the parts of a service while New builds it. It does not change after the service has started.
type assembly struct {
	*replica.Replica

	config     Config
	operations *operations.Store
	runtimes   *runtimes.Store
	entries    *auditlog.Store
	// parts are the dependencies of the processes.
	parts Parts
	// director and registrar are nil if Director is disabled.
	director  *director.Client
	registrar orders.Registrar
	processes []process.Process[operation.Data]
	engine    *process.Engine[operation.Data]
	// systems are the upstream systems that guard has registered.
	systems  []*upstream.System
	notifier *storage.Notifier
	// background lists the service's jobs other than the API, in the order in which they start.
	background []lifecycle.Part
}

// build connects the parts and binds the addresses. New background jobs are added here. Jobs stop in reverse order, so the
// engine is last in the list: it stops first, while the jobs that its steps depend on are still running.
func (a *assembly) build(ctx context.Context, garden client.WithWatch) error {
	if err := a.openStores(ctx); err != nil {
		return err
	}

	if err := a.connectGardener(garden); err != nil {
		return err
	}

	if err := a.connectDirector(ctx); err != nil {
		return err
	}

	releases, err := a.config.Kyma.open(ctx, a.runtimes)
	if err != nil {
		return err
	}

	a.parts.Releases, a.parts.Installer = releases.known, releases.direct
	if releases.system != nil {
		a.guard("the release registry", releases.system, releases.registry.Probe)
	}

	if err := a.connectBundles(releases); err != nil {
		return err
	}

	if err := a.startEngine(); err != nil {
		return err
	}

	a.notifier = a.DB.NewNotifier(a.Log)
	waker := &shootWaker{
		store: a.operations, wake: a.wake, clock: clock.RealClock{}, log: a.Log, changed: make(chan string, changes),
	}
	auditParts, err := a.AuditParts("provisioner", a.entries, NewRemoval(a.runtimes), nil)
	if err != nil {
		return err
	}

	a.background = append(append(a.background, auditParts...),
		lifecycle.Part{Name: "notifier", Run: func(ctx context.Context) error { return a.notifier.Run(ctx, a.engine.Wake) }},
		lifecycle.Part{Name: "shoot waker", Run: waker.run},
		lifecycle.Part{Name: "shoot watch", Run: func(ctx context.Context) error {
			return a.parts.Shoots.Watch(ctx, func(shootName string) { waker.notify(ctx, shootName) })
		}},
		Orphans{Runtimes: a.runtimes, Shoots: a.parts.Shoots, Log: a.Log}.Part(),
		Regions{Runtimes: a.runtimes, Log: a.Log}.Part(),
		keyrotation.New(keyrotation.Options{
			DB: a.DB, Keys: a.Keys, Columns: SealedColumns(),
			Clock: clock.RealClock{}, Log: a.Log, Metrics: a.Metrics(),
		}).Part(),
		a.operations.Retention(a.config.Engine.TimelineRetention, clock.RealClock{}, a.Log).Part(),
		lifecycle.Part{Name: "engine", Run: a.engine.Run, StopsEarly: true},
	)

	return a.Serve(ctx, a.handler(), a.background...)
}

// SealedColumns returns the sealed columns of the Provisioner's database.
func SealedColumns() []storage.SealedColumn {
	return []storage.SealedColumn{operations.Sealed(), runtimes.Sealed()}
}

// openStores opens the Provisioner's tables and registers the metric for the length of the operation queue.
func (a *assembly) openStores(ctx context.Context) error {
	var err error

	if a.operations, err = operations.Open(ctx, a.DB, a.Keys); err != nil {
		return err
	}

	a.operations.KeepFor(a.config.AuditRetention)

	if a.runtimes, err = runtimes.Open(ctx, a.DB, a.Keys); err != nil {
		return err
	}

	if a.entries, err = auditlog.Open(ctx, a.DB, a.config.AuditRetention); err != nil {
		return err
	}

	a.parts.Runtimes, a.parts.Record = a.runtimes, a.runtimes.Record
	a.Metrics().MustRegister(telemetry.Queue(a.operations, clock.RealClock{}, a.Log))

	return nil
}

// connectGardener builds the clients for the given garden or, if garden is nil, for the configured Gardener.
func (a *assembly) connectGardener(garden client.WithWatch) error {
	config := a.config.Gardener
	system := upstream.New(upstream.Options{
		Name: "gardener", Title: "Gardener", Component: failure.ComponentGardenerClient,
		Calls: config.Calls, Variable: "APP_GARDENER_CALLS",
	})

	if garden != nil {
		a.parts.Shoots = gardener.New(garden, namespace(config.Project))
	} else {
		shoots, err := gardener.Follow(config.KubeconfigPath, a.Access.Files, namespace(config.Project),
			system.Transport, bounds.Responses(largestAnswer))
		if err != nil {
			return err
		}

		a.parts.Shoots = shoots
	}

	clusters := clusteraccess.New(a.parts.Shoots)
	a.parts.Clusters, a.parts.Agents = clusters, clusters
	a.guard("Gardener", system, a.parts.Shoots.Probe)

	return nil
}

// guard registers the metrics of an upstream system, and adds a background job that probes the system during an outage and
// afterwards makes the waiting operations due.
func (a *assembly) guard(title string, system *upstream.System, probe func(context.Context) error) {
	a.Metrics().MustRegister(system)
	a.systems = append(a.systems, system)
	a.background = append(a.background, lifecycle.Part{Name: "recovery of " + title, Run: upstream.Recovery{
		System: system, Probe: probe, Operations: a.operations, Wake: a.wake, Clock: clock.RealClock{}, Log: a.Log,
	}.Run})
}

// wake makes the engines of all replicas look for due operations. It notifies the engine of this replica directly, and the
// others through the database. It is called after a commit, from any goroutine. A lost notification delays an operation until
// the next poll.
func (a *assembly) wake() {
	a.engine.Wake()
	a.notifier.Notify()
}

// startEngine builds the engine with all processes. If EnqueueInProgressOperations is false, the engine runs only operations that
// were accepted after the replica started.
func (a *assembly) startEngine() error {
	limits := a.config.Engine.Process()
	limits.Observer, limits.Tracer = telemetry.New(a.Metrics()), telemetry.NewTracer(a.Tracing)
	limits.Component = failure.ComponentProvisioner

	if !a.config.EnqueueInProgressOperations {
		limits.CreatedAfter = clock.RealClock{}.Now()
	}

	a.parts.Traceparent = func(record process.Record) string { return telemetry.Traceparent(a.Tracing, record) }

	var err error

	a.processes = Processes(a.config, a.parts)

	a.engine, err = process.NewEngine(a.operations, limits, clock.RealClock{}, a.Log, a.processes...)
	if err != nil {
		return fmt.Errorf("assembling the engine: %w", err)
	}

	a.operations.OnEnded(a.engine.Ended)

	return nil
}

// handler returns the GraphQL API and the operator API.
func (a *assembly) handler() http.Handler {
	recorder := audit.NewRecorder(a.entries, a.DB, clock.RealClock{}, a.Log)
	operators := operator.NewHandler(operator.Options{Runtimes: a.runtimes, Options: operatorserver.Options{
		DB: a.DB, Operations: a.operations, Recorder: recorder, Entries: a.entries, Authorizer: a.Access.Authorizer,
		Clock: clock.RealClock{}, Log: a.Log, Metrics: a.HTTP, Tracing: a.Tracing, Engine: a.engine, Wake: a.wake,
		Processes: process.Describe(a.processes), Systems: a.systems, Differences: a.comparer(recorder),
		Settings: program.Settings(program.Prefix, DefaultConfig(), a.config),
	}})

	mux := http.NewServeMux()
	mux.Handle("/", a.graphQL(recorder))

	for _, path := range operator.Paths() {
		mux.Handle(path, operators)
	}

	return mux
}

// comparer returns the Comparer for the runtimes, Gardener and Director. If Director is disabled, it leaves Comparer.Director
// unset: an interface that contains a nil pointer would not be nil.
func (a *assembly) comparer(recorder *audit.Recorder) *reconcile.Comparer {
	comparer := &reconcile.Comparer{
		DB: a.DB, Runtimes: a.runtimes, Operations: a.operations, Recorder: recorder, Shoots: a.parts.Shoots,
		Namespace: namespace(a.config.Gardener.Project), Clock: clock.RealClock{},
	}
	if a.director != nil {
		comparer.Director = a.director
	}

	return comparer
}

// consoles returns Director as the source of console addresses. If Director is disabled, it returns a nil interface: an interface
// that contains a nil pointer would not be nil.
func (a *assembly) consoles() orders.Consoles {
	if a.director == nil {
		return nil
	}

	return a.director
}

// graphQL returns the GraphQL API behind authentication. Rejected requests appear in the audit log: the API records rejected
// mutations and rejected queries for kubeconfigs, and the recorder records requests without valid credentials or permissions. The
// API does not record other queries, because they neither change anything nor return credentials.
func (a *assembly) graphQL(recorder *audit.Recorder) http.Handler {
	build := shootBuilder(a.config, a.parts.Files, nil)
	rules := validation.Rules{Project: a.config.Gardener.Project}

	api := graph.NewHandler(graph.Options{
		Service: orders.New(orders.Options{
			DB: a.DB, Operations: a.operations, Runtimes: a.runtimes, Kubeconfigs: a.parts.Shoots, Shoots: a.parts.Shoots,
			OfRuntime: a.parts.Shoots.OfRuntime,
			Adopter:   a.parts.Shoots, Build: shootBuilder(a.config, a.parts.Files, func(runtimes.Runtime) (string, error) { return recordShown, nil }),
			Registrar: a.registrar, Agents: a.parts.statuses(), Consoles: a.consoles(), Recorder: recorder,
			Clock: clock.RealClock{}, Wake: a.wake, KubeconfigValidity: a.config.Gardener.KubeconfigValidity, Releases: a.parts.Releases,
			Defaults: &orders.Defaults{KubernetesVersion: a.config.Gardener.Shoots.KubernetesVersion, MachineTypes: a.config.Gardener.Shoots.MachineTypes},
			Validate: func(order spec.Runtime) error { return validation.Provision(order, rules) },
			Check: func(runtime runtimes.Runtime) error {
				_, err := build(runtime, runtime.ProvisionedBy)

				return err
			},
		}),
		Log:                a.Log,
		Recorder:           recorder,
		Endpoint:           a.config.APIEndpoint,
		PlaygroundEndpoint: a.config.PlaygroundAPIEndpoint,
	})

	return httpserver.Wrap(api, httpserver.Observe(a.Log, a.HTTP, clock.RealClock{}), audit.Introduce,
		recorder.Refusals(func(*http.Request) audit.Target { return audit.Target{} }),
		a.Access.Authorizer.Require(auth.RoleOSB, auth.RoleOperator))
}
