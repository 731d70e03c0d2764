package service

import (
	"context"
	"net/http"
	"time"

	"k8s.io/utils/clock"

	"github.com/environment-broker/environment-broker/broker"
	"github.com/environment-broker/environment-broker/broker/operator"
	"github.com/environment-broker/environment-broker/broker/orchestration"
	"github.com/environment-broker/environment-broker/internal/clients/bundleclient"
	"github.com/environment-broker/environment-broker/internal/httpserver"
	"github.com/environment-broker/environment-broker/internal/program/lifecycle"
)

// pollEvery is the interval at which a synchronous request polls its operation. The creation of a binding takes about a second.
const pollEvery = 100 * time.Millisecond

// served are the dependencies of the handlers.
type served struct {
	operators operator.Options
	// bundles is nil if the console shows no Bundles.
	bundles *bundleclient.Client
}

// serve listens on the addresses of all APIs and the console. The parts start in the given order; see replica.Serve.
func (s *Service) serve(ctx context.Context, config Config, served served, requests *httpserver.Load, parts ...lifecycle.Part) error {
	console, err := s.console(config, served)
	if err != nil {
		return err
	}

	return s.Serve(ctx, requests.Count(broker.NewHandler(brokerOptions(config, served.operators, console, requests))), parts...)
}

// brokerOptions returns the options of the broker's handler. It copies shared dependencies from the options of the operator API,
// which the handler also serves.
func brokerOptions(config Config, operators operator.Options, console http.Handler, requests *httpserver.Load) broker.Options {
	return broker.Options{
		DB:           operators.DB,
		Instances:    operators.Instances,
		Operations:   operators.Operations,
		Bindings:     operators.Bindings,
		Leftovers:    operators.Leftovers,
		Objects:      operators.Objects,
		Catalog:      operators.Catalog,
		BindingLimit: config.BindingLimit,
		UnbindWait:   config.UnbindWait,
		Pause: func(ctx context.Context) error {
			return requests.Exclude(func() error { return lifecycle.Pause(ctx, clock.RealClock{}, pollEvery) })
		},
		Wake:            operators.Wake,
		Clock:           operators.Clock,
		Log:             operators.Log,
		Metrics:         operators.Metrics,
		Recorder:        operators.Recorder,
		Authorizer:      operators.Authorizer,
		Platforms:       operators.Platforms,
		DefaultRegion:   config.DefaultRequestRegion,
		Strict:          config.OSBStrict,
		DashboardURL:    config.dashboard(),
		PublicURL:       config.PublicURL,
		Periods:         config.ExpirationPeriods,
		Quotas:          operators.Quotas,
		AccountMovement: config.SubaccountMovementEnabled,
		RangesLeftOpen:  operators.RangesLeftOpen,
		Estimator:       operators.Estimator,
		Console:         console,
		UpgradeTimes:    orchestration.OwnerTimes{Orchestrations: operators.Orchestrations},
		Otherwise:       operator.NewHandler(operators),
	}
}
