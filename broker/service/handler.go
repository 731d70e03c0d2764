package service

import (
	"context"
	"time"

	"github.com/sirupsen/logrus"
	"k8s.io/utils/clock"

	"github.com/environment-broker/environment-broker/broker"
	"github.com/environment-broker/environment-broker/broker/catalog"
	"github.com/environment-broker/environment-broker/broker/expiry"
	"github.com/environment-broker/environment-broker/broker/operator"
	"github.com/environment-broker/environment-broker/internal/audit"
	"github.com/environment-broker/environment-broker/internal/auth"
	"github.com/environment-broker/environment-broker/internal/clusterclient"
	"github.com/environment-broker/environment-broker/internal/environment"
	"github.com/environment-broker/environment-broker/internal/lifecycle"
	"github.com/environment-broker/environment-broker/internal/upstream"
	"github.com/environment-broker/environment-broker/process"
)

// pollEvery is the interval at which a synchronous request polls its operation.
const pollEvery = 100 * time.Millisecond

// handlerParts are the dependencies of the handlers.
type handlerParts struct {
	stores     stores
	expirer    expiry.Expirer
	recorder   *audit.Recorder
	catalog    *catalog.Catalog
	authorizer *auth.Authorizer
	access     clusterclient.Access
	processes  []process.Process[environment.Data]
	systems    []*upstream.System
	log        logrus.FieldLogger
	engine     operator.Processes
	// kymaProvisioner reports whether the broker uses the Kyma Provisioner.
	kymaProvisioner func() bool
	wake            func()
}

// brokerOptions returns the options of the broker's handler, which includes the operator API.
func brokerOptions(config Config, parts handlerParts) broker.Options {
	stages := map[string][]string{}
	for _, process := range parts.processes {
		stages[process.Kind] = process.StageNames()
	}

	operators := operator.NewHandler(operator.Options{
		DB:          parts.stores.db,
		Instances:   parts.stores.instances,
		Operations:  parts.stores.operations,
		Bindings:    parts.stores.bindings,
		Recorder:    parts.recorder,
		Entries:     parts.stores.entries,
		Authorizer:  parts.authorizer,
		Clock:       clock.RealClock{},
		Log:         parts.log,
		Kubeconfigs: parts.access,
		Endpoints:   operator.EndpointsOf(parts.access, clock.RealClock{}),
		OIDC:        operator.OIDC{IssuerURL: config.OIDC.IssuerURL, ClientID: config.OIDC.ClientID},
		Processes:   parts.engine,
		Expirer:     parts.expirer,
		Wake:        parts.wake,
		Stages:      stages,
		Systems:     parts.systems,
		Catalog:     parts.catalog,
	})

	return broker.Options{
		DB:           parts.stores.db,
		Instances:    parts.stores.instances,
		Operations:   parts.stores.operations,
		Bindings:     parts.stores.bindings,
		Catalog:      parts.catalog,
		BindingLimit: config.BindingLimit,
		Pause: func(ctx context.Context) error {
			return lifecycle.Pause(ctx, clock.RealClock{}, pollEvery)
		},
		Wake:          parts.wake,
		Clock:         clock.RealClock{},
		Log:           parts.log,
		Recorder:      parts.recorder,
		Authorizer:    parts.authorizer,
		DefaultRegion: config.DefaultRequestRegion,
		Strict:        config.OSBStrict,
		DashboardURL:  config.DashboardURL,
		PublicURL:     config.PublicURL,
		Periods:       parts.expirer.Periods,
		Otherwise:     operators,

		AccountMovement: config.SubaccountMovementEnabled,
		RangesLeftOpen:  parts.kymaProvisioner,
	}
}
