package service

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	"github.com/sirupsen/logrus"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/environment-broker/environment-broker/internal/auth"
	"github.com/environment-broker/environment-broker/internal/failure"
	"github.com/environment-broker/environment-broker/internal/lifecycle"
	"github.com/environment-broker/environment-broker/internal/replica"
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
	"github.com/environment-broker/environment-broker/storage/operations"
	stored "github.com/environment-broker/environment-broker/storage/runtimes"
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

	if garden == nil {
		if garden, err = gardener.Connect(config.Gardener.KubeconfigPath); err != nil {
			return nil, err
		}
	}

	base, err := replica.New(ctx, replica.Config{
		Address: config.Address, StatusAddress: config.StatusAddress, ShutdownDelay: config.ShutdownDelay,
		Users: config.AuthBasicUsers, Database: config.Database,
	}, log)
	if err != nil {
		return nil, err
	}

	service := &Service{base}
	if err := service.build(ctx, config, garden); err != nil {
		return nil, errors.Join(err, service.Close())
	}

	return service, nil
}

func (s *Service) build(ctx context.Context, config Config, garden client.WithWatch) error {
	operationStore, err := operations.Open(ctx, s.DB, s.Keys)
	if err != nil {
		return err
	}

	runtimeStore, err := stored.Open(ctx, s.DB, s.Keys)
	if err != nil {
		return err
	}

	shoots := gardener.New(garden, namespace(config.Gardener.Project))
	build := shootBuilder(config)

	engine, err := s.engine(config, operationStore, runtimeStore, shoots, build)
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
			DB: s.DB, Operations: operationStore, Runtimes: runtimeStore, Kubeconfigs: shoots,
			Clock: clock.RealClock{}, Wake: wake, KubeconfigValidity: config.Gardener.KubeconfigValidity,
			Check: func(runtime stored.Runtime) error {
				_, err := build(runtime, runtime.ProvisionedBy)

				return err
			},
		}),
		Rules:              validation.Rules{Project: config.Gardener.Project},
		Log:                s.Log,
		Endpoint:           config.APIEndpoint,
		PlaygroundEndpoint: config.PlaygroundAPIEndpoint,
	})

	return s.Serve(ctx, auth.Require(s.Users, auth.RoleOSB, auth.RoleOperator)(handler),
		lifecycle.Part{Name: "notifier", Run: func(ctx context.Context) error { return notifier.Run(ctx, engine.Wake) }},
		lifecycle.Part{Name: "shoot waker", Run: waker.run},
		lifecycle.Part{Name: "shoot watch", Run: func(ctx context.Context) error { return shoots.Watch(ctx, waker.tell) }},
		lifecycle.Part{Name: "orphan remover", Run: orphanRemover{
			runtimes: runtimeStore, shoots: shoots, clock: clock.RealClock{}, log: s.Log,
		}.run},
		lifecycle.Part{Name: "engine", Run: engine.Run, AtOnce: true},
	)
}

func (s *Service) engine(config Config, operationStore *operations.Store, runtimeStore *stored.Store, shoots *gardener.Client,
	build provisioning.BuildShoot,
) (*process.Engine[operation.Data], error) {
	limits := process.DefaultConfig()
	limits.Workers, limits.Lease = config.Engine.Workers, config.Engine.LeaseDuration
	limits.PendingLimit = config.Engine.PendingTimeout

	if !config.EnqueueInProgressOperations {
		limits.CreatedAfter = clock.RealClock{}.Now()
	}

	engine, err := process.NewEngine(operationStore, limits, clock.RealClock{}, s.Log,
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
