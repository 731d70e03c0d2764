package service

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/sirupsen/logrus"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/environment-broker/environment-broker/internal/audit"
	"github.com/environment-broker/environment-broker/internal/auth"
	"github.com/environment-broker/environment-broker/internal/enginetelemetry"
	"github.com/environment-broker/environment-broker/internal/failure"
	"github.com/environment-broker/environment-broker/internal/httpserver"
	"github.com/environment-broker/environment-broker/internal/lifecycle"
	"github.com/environment-broker/environment-broker/internal/replica"
	"github.com/environment-broker/environment-broker/internal/upstream"
	"github.com/environment-broker/environment-broker/process"
	"github.com/environment-broker/environment-broker/provisioner/clusteraccess"
	"github.com/environment-broker/environment-broker/provisioner/gardener"
	"github.com/environment-broker/environment-broker/provisioner/graph"
	"github.com/environment-broker/environment-broker/provisioner/operation"
	"github.com/environment-broker/environment-broker/provisioner/orders"
	"github.com/environment-broker/environment-broker/provisioner/spec"
	"github.com/environment-broker/environment-broker/provisioner/validation"
	"github.com/environment-broker/environment-broker/storage"
	"github.com/environment-broker/environment-broker/storage/auditlog"
	"github.com/environment-broker/environment-broker/storage/keyrotation"
	"github.com/environment-broker/environment-broker/storage/operations"
	"github.com/environment-broker/environment-broker/storage/runtimes"
)

// Service is a Provisioner that is ready to run: its addresses are bound, its database is open and up to date.
type Service struct {
	*replica.Replica
}

// New checks the configuration and builds the service. If garden is nil, it connects to the configured Gardener.
func New(ctx context.Context, config Config, garden client.WithWatch, log logrus.FieldLogger) (*Service, error) {
	err := config.check()
	if err != nil {
		return nil, err
	}

	files, err := readShootFiles(config.Gardener.Shoots)
	if err != nil {
		return nil, err
	}

	base, err := replica.New(ctx, "provisioner", config.Config, log)
	if err != nil {
		return nil, err
	}

	service := &Service{base}
	if err := service.build(ctx, config, files, garden); err != nil {
		return nil, errors.Join(err, service.Close())
	}

	return service, nil
}

// stores are the Provisioner's tables.
type stores struct {
	operations *operations.Store
	runtimes   *runtimes.Store
	entries    *auditlog.Store
}

func (s *Service) openStores(ctx context.Context, retention time.Duration) (stores, error) {
	operationStore, err := operations.Open(ctx, s.DB, s.Keys)
	if err != nil {
		return stores{}, err
	}

	runtimeStore, err := runtimes.Open(ctx, s.DB, s.Keys)
	if err != nil {
		return stores{}, err
	}

	entries, err := auditlog.Open(ctx, s.DB, retention)

	return stores{operations: operationStore, runtimes: runtimeStore, entries: entries}, err
}

// largestAnswer is the limit of an answer of Gardener in bytes. A list of ten thousand Shoots fits.
const largestAnswer = 512 << 20

// connect returns a client of the garden or, without one, of the configured Gardener.
func (s *Service) connect(config Gardener, garden client.WithWatch, system *upstream.System) (*gardener.Client, error) {
	if garden != nil {
		return gardener.New(garden, namespace(config.Project)), nil
	}

	return gardener.Follow(config.KubeconfigPath, s.Access.Files, namespace(config.Project),
		system.Transport, upstream.Bounded(largestAnswer))
}

// build connects all parts and starts serving. A new background job is added here; each one stops when the service does, the
// engine first.
func (s *Service) build(ctx context.Context, config Config, files ShootFiles, garden client.WithWatch) error {
	system := upstream.New(upstream.Options{
		Name: "gardener", Title: "Gardener", Component: failure.ComponentGardenerClient,
		Calls: config.Gardener.Calls, Variable: "APP_GARDENER_CALLS",
	})

	shoots, err := s.connect(config.Gardener, garden, system)
	if err != nil {
		return err
	}

	directory, err := connectDirector(ctx, config, s.Access.Files, s.Log)
	if err != nil {
		return err
	}

	stores, err := s.openStores(ctx, config.AuditRetention)
	if err != nil {
		return err
	}

	releases, err := config.Kyma.open(ctx)
	if err != nil {
		return err
	}

	s.Metrics().MustRegister(slices.Concat(directory.collectors(), releases.collectors(), []prometheus.Collector{
		system, enginetelemetry.Queue(stores.operations, clock.RealClock{}, s.Log),
	})...)

	inside := clusteraccess.New(shoots)
	parts := Parts{
		Shoots: shoots, Clusters: inside, Agents: inside, Runtimes: stores.runtimes, Files: files,
		Director: directory.asDirector(), Tokens: directory.asTokens(),
		Releases: releases.known, Installer: releases.installer,
	}

	engine, err := s.engine(config, stores.operations, parts)
	if err != nil {
		return err
	}

	notifier := s.DB.NewNotifier(s.Log)
	wake := func() {
		engine.Wake()
		notifier.Notify()
	}
	waker := &shootWaker{
		store: stores.operations, wake: wake, clock: clock.RealClock{}, log: s.Log, changed: make(chan string, changes),
	}
	handler := s.handler(config, stores, parts, directory, wake)

	background := slices.Concat(
		directory.parts(stores.runtimes, stores.operations, wake), releases.parts(stores.operations, wake, s.Log))
	background = append(background,
		lifecycle.Part{Name: "notifier", Run: func(ctx context.Context) error { return notifier.Run(ctx, engine.Wake) }},
		lifecycle.Part{Name: "shoot waker", Run: waker.run},
		lifecycle.Part{Name: "recovery of Gardener", Run: upstream.Recovery{
			System: system, Probe: shoots.Probe, Operations: stores.operations, Wake: wake, Clock: clock.RealClock{}, Log: s.Log,
		}.Run},
		lifecycle.Part{Name: "shoot watch", Run: func(ctx context.Context) error {
			return shoots.Watch(ctx, func(shootName string) { waker.notify(ctx, shootName) })
		}},
		lifecycle.Part{Name: "orphan remover", Run: func(ctx context.Context) error {
			return RemoveOrphans(ctx, stores.runtimes, shoots, s.Log)
		}},
		keyrotation.New(keyrotation.Options{
			DB: s.DB, Keys: s.Keys, Columns: []storage.SealedColumn{operations.Sealed(), runtimes.Sealed()},
			Clock: clock.RealClock{}, Log: s.Log, Metrics: s.Metrics(),
		}).Part(),
		stores.operations.Retention(config.Engine.TimelineRetention, clock.RealClock{}, s.Log).Part(),
		stores.entries.Retention(clock.RealClock{}, s.Log).Part(),
		lifecycle.Part{Name: "engine", Run: engine.Run, StopsEarly: true},
	)

	return s.Serve(ctx, handler, background...)
}

// handler returns the API behind authentication.
func (s *Service) handler(config Config, stores stores, parts Parts, directory *directory, wake func()) http.Handler {
	recorder := audit.NewRecorder(stores.entries, s.DB, clock.RealClock{}, s.Log)
	build := shootBuilder(config, parts.Files)

	api := graph.NewHandler(graph.Options{
		Service: orders.New(orders.Options{
			DB: s.DB, Operations: stores.operations, Runtimes: stores.runtimes, Kubeconfigs: parts.Shoots, Shoots: parts.Shoots,
			Registrar: directory.registrar(stores.runtimes), Agents: parts.statuses(), Recorder: recorder,
			Clock: clock.RealClock{}, Wake: wake, KubeconfigValidity: config.Gardener.KubeconfigValidity, Releases: parts.Releases,
			Validate: func(order spec.Runtime) error {
				return validation.Provision(order, validation.Rules{Project: config.Gardener.Project})
			},
			Check: func(runtime runtimes.Runtime) error {
				_, err := build(runtime, runtime.ProvisionedBy)

				return err
			},
		}),
		Log:                s.Log,
		Recorder:           recorder,
		Endpoint:           config.APIEndpoint,
		PlaygroundEndpoint: config.PlaygroundAPIEndpoint,
	})

	// Queries change nothing; the API records refused mutations itself.
	return httpserver.Wrap(api, audit.Introduce, recorder.Refusals(func(*http.Request) audit.Target { return audit.Target{} }),
		s.Access.Authorizer.Require(auth.RoleOSB, auth.RoleOperator))
}

// engine returns the engine with all processes. Without EnqueueInProgressOperations it ignores operations that were accepted
// before the start.
func (s *Service) engine(config Config, operationStore *operations.Store, parts Parts) (*process.Engine[operation.Data], error) {
	limits := config.Engine.Process()
	limits.Observer, limits.Tracer = enginetelemetry.New(s.Metrics()), enginetelemetry.NewTracer(s.Tracing)
	limits.Component = failure.ComponentProvisioner

	if !config.EnqueueInProgressOperations {
		limits.CreatedAfter = clock.RealClock{}.Now()
	}

	engine, err := process.NewEngine(operationStore, limits, clock.RealClock{}, s.Log, Processes(config, parts)...)
	if err != nil {
		return nil, fmt.Errorf("putting the engine together: %w", err)
	}

	operationStore.OnEnded(engine.Ended)

	return engine, nil
}
