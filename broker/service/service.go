package service

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"

	"github.com/sirupsen/logrus"
	"golang.org/x/time/rate"
	"k8s.io/utils/clock"

	"github.com/environment-broker/environment-broker/broker/feed"
	"github.com/environment-broker/environment-broker/internal/auth"
	"github.com/environment-broker/environment-broker/internal/environment"
	"github.com/environment-broker/environment-broker/internal/health"
	"github.com/environment-broker/environment-broker/internal/lifecycle"
	"github.com/environment-broker/environment-broker/internal/provisionerclient"
	"github.com/environment-broker/environment-broker/internal/runtimeaccess"
	"github.com/environment-broker/environment-broker/internal/serving"
	"github.com/environment-broker/environment-broker/process"
	"github.com/environment-broker/environment-broker/process/deprovisioning"
	"github.com/environment-broker/environment-broker/process/provisionerwait"
	"github.com/environment-broker/environment-broker/process/provisioning"
	"github.com/environment-broker/environment-broker/storage"
	"github.com/environment-broker/environment-broker/storage/instances"
	"github.com/environment-broker/environment-broker/storage/operations"
)

// Service is a broker that is ready to run: its addresses are bound, its database is open and up to date.
type Service struct {
	log    logrus.FieldLogger
	db     *storage.DB
	api    *serving.Server
	status *serving.Server
	health *health.Health
	parts  []lifecycle.Part
}

// New checks the configuration and puts the service together.
func New(ctx context.Context, config Config, log logrus.FieldLogger) (*Service, error) {
	users, err := auth.ParseUsers(config.AuthBasicUsers)
	if err != nil {
		return nil, fmt.Errorf("APP_AUTH_BASIC_USERS: %w", err)
	}

	if err := auth.CheckExposure(config.Address, users, "APP_AUTH_BASIC_USERS"); err != nil {
		return nil, err
	}

	if config.Provisioner.PollLimit < 1 {
		return nil, errors.New("APP_PROVISIONER_POLL_LIMIT: it has to be at least 1")
	}

	service := &Service{log: log}
	if err := service.build(ctx, config, users); err != nil {
		return nil, errors.Join(err, service.Close())
	}

	return service, nil
}

// stores are the broker's tables.
type stores struct {
	db         *storage.DB
	operations *operations.Store
	instances  *instances.Store
}

func openStores(ctx context.Context, config Config) (stores, error) {
	keys, err := config.Database.Keys()
	if err != nil {
		return stores{}, err
	}

	database, err := config.Database.Storage()
	if err != nil {
		return stores{}, err
	}

	db, err := storage.Open(ctx, database)
	if err != nil {
		return stores{}, err
	}

	opened := stores{db: db}

	if opened.operations, err = operations.Open(ctx, db, keys); err == nil {
		opened.instances, err = instances.Open(ctx, db, keys)
	}

	if err != nil {
		return stores{}, errors.Join(err, db.Close())
	}

	return opened, nil
}

func (s *Service) build(ctx context.Context, config Config, users auth.Users) error {
	stores, err := openStores(ctx, config)
	if err != nil {
		return err
	}

	s.db = stores.db

	provisioner, err := provisionerClient(config.Provisioner)
	if err != nil {
		return err
	}

	notifier := s.db.NewNotifier(s.log)

	// The feed wakes the engine, whose processes wait at the feed's pace.
	var engine *process.Engine[environment.Data]

	follow := feed.New(provisioner, stores.operations, func() { engine.Wake() }, clock.RealClock{}, s.log)
	access := runtimeaccess.New(provisioner)
	processes := processes(config, stores, provisioner, follow, access)

	limits := process.DefaultConfig()
	limits.Workers, limits.Lease = config.Engine.Workers, config.Engine.LeaseDuration

	engine, err = process.NewEngine(stores.operations, limits, clock.RealClock{}, s.log, processes...)
	if err != nil {
		return fmt.Errorf("putting the engine together: %w", err)
	}

	handler, err := newHandler(config, handlerParts{
		stores: stores, users: users, access: access, processes: processes, log: s.log,
		wake: func() {
			engine.Wake()
			notifier.Notify()
		},
	})
	if err != nil {
		return err
	}

	if err := s.listen(ctx, config, handler); err != nil {
		return err
	}

	s.parts = []lifecycle.Part{
		{Name: "status server", Run: s.status.Run},
		{Name: "notifier", Run: func(ctx context.Context) error { return notifier.Run(ctx, engine.Wake) }},
		{Name: "feed", Run: follow.Run},
		{Name: "engine", Run: engine.Run},
		{Name: "api server", Run: s.api.Run},
		{Name: "readiness", Run: s.health.Run},
	}

	return nil
}

func provisionerClient(config Provisioner) (*provisionerclient.Client, error) {
	address, err := url.Parse(config.URL)
	if err != nil {
		return nil, errors.New("APP_PROVISIONER_URL: it cannot be read") // the error would repeat it
	}

	if config.User != "" {
		address.User = url.UserPassword(config.User, config.Password.Reveal())
	}

	client, err := provisionerclient.New(provisionerclient.Options{URL: address.String(), Timeout: config.Timeout})
	if err != nil {
		return nil, fmt.Errorf("APP_PROVISIONER_URL: %w", err)
	}

	return client, nil
}

// processes are what the broker does with instances.
func processes(config Config, stores stores, provisioner *provisionerclient.Client, follow *feed.Feed, access runtimeaccess.Access,
) []process.Process[environment.Data] {
	waiter := provisionerwait.Waiter{
		Operations: provisioner,
		Pace:       follow.Pace,
		Calls:      rate.NewLimiter(rate.Limit(config.Provisioner.PollLimit), config.Provisioner.PollLimit),
		Limit:      config.Provisioner.RuntimeTimeout,
	}
	rows := rows{stores}

	return []process.Process[environment.Data]{
		provisioning.Process(provisioning.Options{
			Provisioner:   provisioner,
			Instances:     rows,
			TargetSecrets: config.TargetSecrets,
			Access:        access,
			Waiter:        waiter,
			Limit:         config.Engine.OperationTimeout,
		}),
		deprovisioning.Process(deprovisioning.Options{
			Provisioner:   provisioner,
			Instances:     rows,
			Provisionings: rows,
			Waiter:        waiter,
			Limit:         config.Engine.OperationTimeout,
		}),
	}
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

// Address is where the Open Service Broker API and the operator API are.
func (s *Service) Address() string { return s.api.Address() }

// StatusAddress is where health, readiness and metrics are told.
func (s *Service) StatusAddress() string { return s.status.Address() }

// Run serves and works until the context ends, then stops in order.
func (s *Service) Run(ctx context.Context) error {
	s.log.WithField("address", s.Address()).Info("broker runs")

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
