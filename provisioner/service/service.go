package service

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"

	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	"github.com/sirupsen/logrus"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/environment-broker/environment-broker/internal/auth"
	"github.com/environment-broker/environment-broker/internal/failure"
	"github.com/environment-broker/environment-broker/internal/health"
	"github.com/environment-broker/environment-broker/internal/lifecycle"
	"github.com/environment-broker/environment-broker/internal/serving"
	"github.com/environment-broker/environment-broker/process"
	"github.com/environment-broker/environment-broker/provisioner/deprovisioning"
	"github.com/environment-broker/environment-broker/provisioner/gardener"
	"github.com/environment-broker/environment-broker/provisioner/graph"
	"github.com/environment-broker/environment-broker/provisioner/graph/model"
	"github.com/environment-broker/environment-broker/provisioner/operation"
	"github.com/environment-broker/environment-broker/provisioner/provisioning"
	"github.com/environment-broker/environment-broker/provisioner/runtimes"
	"github.com/environment-broker/environment-broker/provisioner/shoot"
	"github.com/environment-broker/environment-broker/provisioner/validation"
	"github.com/environment-broker/environment-broker/storage"
	"github.com/environment-broker/environment-broker/storage/operations"
	stored "github.com/environment-broker/environment-broker/storage/runtimes"
)

// Service is a Provisioner that is ready to run: its addresses are bound, its database is open and up to date.
type Service struct {
	log    logrus.FieldLogger
	db     *storage.DB
	api    *serving.Server
	status *serving.Server
	health *health.Health
	parts  []lifecycle.Part
}

// New checks the configuration and puts the service together. Without a garden it connects to the one that the configuration
// names.
func New(ctx context.Context, config Config, garden client.WithWatch, log logrus.FieldLogger) (*Service, error) {
	if err := config.check(); err != nil {
		return nil, err
	}

	users, err := auth.ParseUsers(config.AuthBasicUsers)
	if err != nil {
		return nil, fmt.Errorf("APP_AUTH_BASIC_USERS: %w", err)
	}

	if err := auth.CheckExposure(config.Address, users, "APP_AUTH_BASIC_USERS"); err != nil {
		return nil, err
	}

	if garden == nil {
		if garden, err = gardener.Connect(config.Gardener.KubeconfigPath); err != nil {
			return nil, err
		}
	}

	service := &Service{log: log}
	if err := service.build(ctx, config, users, garden); err != nil {
		return nil, errors.Join(err, service.Close())
	}

	return service, nil
}

func (s *Service) build(ctx context.Context, config Config, users auth.Users, garden client.WithWatch) error {
	keys, err := config.Database.Keys()
	if err != nil {
		return err
	}

	database, err := config.Database.Storage()
	if err != nil {
		return err
	}

	if s.db, err = storage.Open(ctx, database); err != nil {
		return err
	}

	operationStore, err := operations.Open(ctx, s.db, keys)
	if err != nil {
		return err
	}

	runtimeStore, err := stored.Open(ctx, s.db, keys)
	if err != nil {
		return err
	}

	shoots := gardener.New(garden, namespace(config.Gardener.Project))
	build := shootBuilder(config)

	engine, err := s.engine(config, operationStore, runtimeStore, shoots, build)
	if err != nil {
		return err
	}

	notifier := s.db.NewNotifier(s.log)
	wake := func() {
		engine.Wake()
		notifier.Notify()
	}
	waker := &shootWaker{store: operationStore, wake: wake, clock: clock.RealClock{}, log: s.log, changed: make(chan string, changes)}

	handler := graph.NewHandler(graph.Options{
		Runtimes: runtimes.New(runtimes.Options{
			DB: s.db, Operations: operationStore, Runtimes: runtimeStore, Kubeconfigs: shoots,
			Clock: clock.RealClock{}, Wake: wake, KubeconfigValidity: config.Gardener.KubeconfigValidity,
			Check: func(runtime stored.Runtime) error {
				_, err := build(runtime, runtime.ProvisionedBy)

				return err
			},
		}),
		Rules:              validation.Rules{Project: config.Gardener.Project},
		Log:                s.log,
		Endpoint:           config.APIEndpoint,
		PlaygroundEndpoint: config.PlaygroundAPIEndpoint,
	})

	if err := s.listen(ctx, config, auth.Require(users, auth.RoleOSB, auth.RoleOperator)(handler)); err != nil {
		return err
	}

	s.parts = []lifecycle.Part{
		{Name: "status server", Run: s.status.Run},
		{Name: "notifier", Run: func(ctx context.Context) error { return notifier.Run(ctx, engine.Wake) }},
		{Name: "shoot waker", Run: waker.run},
		{Name: "shoot watch", Run: func(ctx context.Context) error { return shoots.Watch(ctx, waker.tell) }},
		{Name: "engine", Run: engine.Run},
		{Name: "api server", Run: s.api.Run},
		{Name: "readiness", Run: s.health.Run},
	}

	return nil
}

func (s *Service) listen(ctx context.Context, config Config, handler http.Handler) error {
	var err error

	if s.api, err = serving.Listen(ctx, config.Address, handler); err != nil {
		return err
	}

	s.health = health.New(s.db.Ping, s.log)
	s.status, err = serving.Listen(ctx, config.StatusAddress, s.health.Handler())

	return err
}

func (s *Service) engine(config Config, operationStore *operations.Store, runtimeStore *stored.Store, shoots *gardener.Client,
	build provisioning.BuildShoot,
) (*process.Engine[operation.Data], error) {
	limits := process.DefaultConfig()
	limits.Workers, limits.Lease = config.Engine.Workers, config.Engine.LeaseDuration

	if !config.EnqueueInProgressOperations {
		limits.CreatedAfter = clock.RealClock{}.Now()
	}

	engine, err := process.NewEngine(operationStore, limits, clock.RealClock{}, s.log,
		provisioning.Process(provisioning.Options{
			Shoots:          shoots,
			Build:           build,
			DomainTimeout:   config.ProvisioningTimeout.ClusterDomains,
			CreationTimeout: config.ProvisioningTimeout.ClusterCreation,
			Poll:            config.Gardener.PollInterval,
			Limit:           config.Engine.OperationTimeout,
		}),
		deprovisioning.Process(deprovisioning.Options{
			Shoots:          shoots,
			Runtimes:        runtimeStore,
			Now:             clock.RealClock{}.Now,
			DeletionTimeout: config.DeprovisioningTimeout.WaitingForClusterDeletion,
			Poll:            config.Gardener.PollInterval,
			Limit:           config.Engine.OperationTimeout,
		}),
	)
	if err != nil {
		return nil, fmt.Errorf("putting the engine together: %w", err)
	}

	return engine, nil
}

// namespace is the project's namespace in Gardener.
func namespace(project string) string { return "garden-" + project }

// shootBuilder makes the Shoots of the landscape.
func shootBuilder(config Config) provisioning.BuildShoot {
	options := shoot.Options{
		Namespace:            namespace(config.Gardener.Project),
		AuditPolicyConfigMap: config.Gardener.AuditLogsPolicyConfigMap,
	}

	return func(runtime stored.Runtime, operationID string) (*gardencorev1beta1.Shoot, error) {
		var input model.ProvisionRuntimeInput
		if err := json.Unmarshal(runtime.Configuration, &input); err != nil {
			return nil, failure.Wrap(failure.Internal, err, "the configuration of the runtime cannot be read")
		}

		return shoot.Build(shoot.Runtime{
			ID:          runtime.ID,
			OperationID: operationID,
			Tenant:      runtime.Tenant,
			SubAccount:  runtime.SubAccount,
			Config:      input.ClusterConfig.GardenerConfig,
		}, options)
	}
}

// Address is where the API listens.
func (s *Service) Address() string { return s.api.Address() }

// StatusAddress is where health, readiness and metrics are told.
func (s *Service) StatusAddress() string { return s.status.Address() }

// Run serves and works until the context ends, then stops in order.
func (s *Service) Run(ctx context.Context) error {
	s.log.WithField("address", s.Address()).Info("provisioner runs")

	err := lifecycle.Run(ctx, s.log, s.parts...)

	return errors.Join(err, s.db.Close())
}

// Close gives back what a service that was never run has taken.
func (s *Service) Close() error {
	var errs []error

	for _, server := range []*serving.Server{s.api, s.status} {
		if server != nil {
			errs = append(errs, server.Close())
		}
	}

	if s.db != nil {
		errs = append(errs, s.db.Close())
	}

	return errors.Join(errs...)
}
