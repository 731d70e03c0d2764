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
	"github.com/environment-broker/environment-broker/internal/enginemetrics"
	"github.com/environment-broker/environment-broker/internal/failure"
	"github.com/environment-broker/environment-broker/internal/lifecycle"
	"github.com/environment-broker/environment-broker/internal/outside"
	"github.com/environment-broker/environment-broker/internal/replica"
	"github.com/environment-broker/environment-broker/internal/rest"
	"github.com/environment-broker/environment-broker/process"
	"github.com/environment-broker/environment-broker/provisioner/clusteraccess"
	"github.com/environment-broker/environment-broker/provisioner/gardener"
	"github.com/environment-broker/environment-broker/provisioner/graph"
	"github.com/environment-broker/environment-broker/provisioner/operation"
	"github.com/environment-broker/environment-broker/provisioner/runtimes"
	"github.com/environment-broker/environment-broker/provisioner/validation"
	"github.com/environment-broker/environment-broker/storage"
	"github.com/environment-broker/environment-broker/storage/operations"
	"github.com/environment-broker/environment-broker/storage/reseal"
	stored "github.com/environment-broker/environment-broker/storage/runtimes"
	"github.com/environment-broker/environment-broker/storage/trail"
)

// Service is a Provisioner that is ready to run: its addresses are bound, its database is open and up to date.
type Service struct {
	*replica.Replica
}

// New checks the configuration and puts the service together. Without a garden it connects to the one that the configuration
// names.
func New(ctx context.Context, config Config, garden client.WithWatch, log logrus.FieldLogger) (*Service, error) {
	err := config.check()
	if err != nil {
		return nil, err
	}

	landscape, err := readLandscape(config.Gardener.Shoots)
	if err != nil {
		return nil, err
	}

	guard := outside.New(outside.Options{
		System: "gardener", Title: "Gardener", Component: failure.ComponentGardenerClient,
		Calls: config.Gardener.Calls, Variable: "APP_GARDENER_CALLS",
	})

	if garden == nil {
		if garden, err = gardener.Connect(config.Gardener.KubeconfigPath, guard.Transport); err != nil {
			return nil, err
		}
	}

	directory, err := connectDirector(ctx, config, log)
	if err != nil {
		return nil, err
	}

	base, err := replica.New(ctx, replica.Config{
		Name:    "provisioner",
		Address: config.Address, StatusAddress: config.StatusAddress, ShutdownDelay: config.ShutdownDelay,
		Users: config.AuthBasicUsers, Access: config.Access, Database: config.Database, Tracing: config.Tracing,
	}, log)
	if err != nil {
		return nil, err
	}

	service := &Service{base}
	if err := service.build(ctx, config, landscape, garden, guard, directory); err != nil {
		return nil, errors.Join(err, service.Close())
	}

	return service, nil
}

func (s *Service) build(
	ctx context.Context, config Config, landscape Landscape, garden client.WithWatch, guard *outside.Guard, directory *directory,
) error {
	operationStore, err := operations.Open(ctx, s.DB, s.Keys)
	if err != nil {
		return err
	}

	s.Metrics().MustRegister(append(directory.collectors(), guard, enginemetrics.Queue(operationStore, clock.RealClock{}, s.Log))...)

	runtimeStore, err := stored.Open(ctx, s.DB, s.Keys)
	if err != nil {
		return err
	}

	entries, err := trail.Open(ctx, s.DB, config.AuditRetention)
	if err != nil {
		return err
	}

	kept := audit.NewTrail(entries, s.DB, clock.RealClock{}, s.Log)
	shoots := gardener.New(garden, namespace(config.Gardener.Project))
	build := shootBuilder(config, landscape)

	releases, installer, err := config.Kyma.open(ctx)
	if err != nil {
		return err
	}

	inside := clusteraccess.New(shoots)
	parts := Parts{
		Shoots: shoots, Clusters: inside, Agents: inside, Runtimes: runtimeStore, Landscape: landscape,
		Director: directory.asDirector(), Tokens: directory.asTokens(),
		Releases: releases, Installer: installer,
	}

	engine, err := s.engine(config, operationStore, parts)
	if err != nil {
		return err
	}

	notifier := s.DB.NewNotifier(s.Log)
	wake := func() {
		engine.Wake()
		notifier.Notify()
	}
	waker := &shootWaker{store: operationStore, wake: wake, clock: clock.RealClock{}, log: s.Log, changed: make(chan string, changes)}

	handler := graph.NewHandler(graph.Options{
		Runtimes: runtimes.New(runtimes.Options{
			DB: s.DB, Operations: operationStore, Runtimes: runtimeStore, Kubeconfigs: shoots, Shoots: shoots,
			Registrar: directory.registrar(runtimeStore), Agents: parts.statuses(), Trail: kept,
			Clock: clock.RealClock{}, Wake: wake, KubeconfigValidity: config.Gardener.KubeconfigValidity, Releases: releases,
			Check: func(runtime stored.Runtime) error {
				_, err := build(runtime, runtime.ProvisionedBy)

				return err
			},
		}),
		Rules:              validation.Rules{Project: config.Gardener.Project},
		Log:                s.Log,
		Trail:              kept,
		Endpoint:           config.APIEndpoint,
		PlaygroundEndpoint: config.PlaygroundAPIEndpoint,
	})

	// What is no mutation changes nothing; of those the API itself tells the trail.
	guarded := rest.Wrap(handler, audit.Introduce, kept.Refusals(func(*http.Request) audit.Target { return audit.Target{} }),
		s.Access.Gate.Require(auth.RoleOSB, auth.RoleOperator))

	background := append(directory.parts(runtimeStore, operationStore, wake),
		lifecycle.Part{Name: "notifier", Run: func(ctx context.Context) error { return notifier.Run(ctx, engine.Wake) }},
		lifecycle.Part{Name: "shoot waker", Run: waker.run},
		lifecycle.Part{Name: "recovery of Gardener", Run: outside.Recovery{
			Guard: guard, Probe: shoots.Probe, Operations: operationStore, Wake: wake, Clock: clock.RealClock{}, Log: s.Log,
		}.Run},
		lifecycle.Part{Name: "shoot watch", Run: func(ctx context.Context) error { return shoots.Watch(ctx, waker.tell) }},
		lifecycle.Part{Name: "orphan remover", Run: func(ctx context.Context) error {
			return RemoveOrphans(ctx, runtimeStore, shoots, s.Log)
		}},
		reseal.New(reseal.Options{
			DB: s.DB, Keys: s.Keys, Columns: []storage.SealedColumn{operations.Sealed(), stored.Sealed()},
			Clock: clock.RealClock{}, Log: s.Log, Metrics: s.Metrics(),
		}).Part(),
		operations.Retention{
			Store: operationStore, Keep: config.Engine.TimelineRetention, Clock: clock.RealClock{}, Log: s.Log,
		}.Part(),
		trail.Retention{Store: entries, Clock: clock.RealClock{}, Log: s.Log}.Part(),
		lifecycle.Part{Name: "engine", Run: engine.Run, AtOnce: true},
	)

	return s.Serve(ctx, guarded, background...)
}

func (s *Service) engine(config Config, operationStore *operations.Store, parts Parts) (*process.Engine[operation.Data], error) {
	limits := process.DefaultConfig()
	limits.Workers, limits.Lease = config.Engine.Workers, config.Engine.LeaseDuration
	limits.PendingLimit, limits.Limits = config.Engine.PendingTimeout, config.Engine.WorkersPerKind
	limits.Observer, limits.Tracer = enginemetrics.New(s.Metrics()), s.Tracing.Operations()

	if !config.EnqueueInProgressOperations {
		limits.CreatedAfter = clock.RealClock{}.Now()
	}

	engine, err := process.NewEngine(operationStore, limits, clock.RealClock{}, s.Log, Processes(config, parts)...)
	if err != nil {
		return nil, fmt.Errorf("putting the engine together: %w", err)
	}

	return engine, nil
}
