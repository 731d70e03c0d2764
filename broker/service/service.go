package service

import (
	"context"
	"errors"
	"fmt"
	"net/url"

	"github.com/sirupsen/logrus"
	"golang.org/x/time/rate"
	"k8s.io/utils/clock"

	"github.com/environment-broker/environment-broker/broker/feed"
	"github.com/environment-broker/environment-broker/internal/environment"
	"github.com/environment-broker/environment-broker/internal/lifecycle"
	"github.com/environment-broker/environment-broker/internal/provisionerclient"
	"github.com/environment-broker/environment-broker/internal/replica"
	"github.com/environment-broker/environment-broker/internal/runtimeaccess"
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
	*replica.Replica
}

// New checks the configuration and puts the service together.
func New(ctx context.Context, config Config, log logrus.FieldLogger) (*Service, error) {
	if err := config.Engine.Check(); err != nil {
		return nil, err
	}

	if config.Provisioner.PollLimit < 1 {
		return nil, errors.New("APP_PROVISIONER_POLL_LIMIT: it has to be at least 1")
	}

	base, err := replica.New(ctx, replica.Config{
		Address: config.Address, StatusAddress: config.StatusAddress, ShutdownDelay: config.ShutdownDelay,
		Users: config.AuthBasicUsers, Database: config.Database,
	}, log)
	if err != nil {
		return nil, err
	}

	service := &Service{base}
	if err := service.build(ctx, config); err != nil {
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

func (s *Service) openStores(ctx context.Context) (stores, error) {
	operationStore, err := operations.Open(ctx, s.DB, s.Keys)
	if err != nil {
		return stores{}, err
	}

	instanceStore, err := instances.Open(ctx, s.DB, s.Keys)

	return stores{db: s.DB, operations: operationStore, instances: instanceStore}, err
}

func (s *Service) build(ctx context.Context, config Config) error {
	stores, err := s.openStores(ctx)
	if err != nil {
		return err
	}

	provisioner, err := provisionerClient(config.Provisioner)
	if err != nil {
		return err
	}

	notifier := s.DB.NewNotifier(s.Log)

	// The feed wakes the engine, whose processes wait at the feed's pace.
	var engine *process.Engine[environment.Data]

	follow := feed.New(provisioner, stores.operations, func() { engine.Wake() }, clock.RealClock{}, s.Log)
	access := runtimeaccess.New(provisioner)
	processes := processes(config, stores, provisioner, follow, access)

	limits := process.DefaultConfig()
	limits.Workers, limits.Lease = config.Engine.Workers, config.Engine.LeaseDuration
	limits.PendingLimit = config.Engine.PendingTimeout

	engine, err = process.NewEngine(stores.operations, limits, clock.RealClock{}, s.Log, processes...)
	if err != nil {
		return fmt.Errorf("putting the engine together: %w", err)
	}

	handler, err := newHandler(config, handlerParts{
		stores: stores, users: s.Users, access: access, processes: processes, log: s.Log,
		wake: func() {
			engine.Wake()
			notifier.Notify()
		},
	})
	if err != nil {
		return err
	}

	return s.Serve(ctx, handler,
		lifecycle.Part{Name: "notifier", Run: func(ctx context.Context) error { return notifier.Run(ctx, engine.Wake) }},
		lifecycle.Part{Name: "feed", Run: follow.Run},
		lifecycle.Part{Name: "engine", Run: engine.Run, AtOnce: true},
	)
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
			Kind:          follow.Kind,
			Limit:         config.Engine.OperationTimeout,
		}),
	}
}
