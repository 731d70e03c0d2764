package service

import (
	"context"
	"net/http"
	"strings"
	"time"

	"k8s.io/utils/clock"

	"github.com/environment-broker/environment-broker/broker"
	"github.com/environment-broker/environment-broker/broker/console"
	"github.com/environment-broker/environment-broker/broker/console/session"
	"github.com/environment-broker/environment-broker/broker/console/tenant"
	"github.com/environment-broker/environment-broker/broker/operator"
	"github.com/environment-broker/environment-broker/process"
)

// console returns the handler of the console, or nil if it is turned off.
func (s *Service) console(config Config, served served) (http.Handler, error) {
	if !config.Console.Enabled {
		return nil, nil
	}

	operators := served.operators

	sessions, err := session.New(session.Options{
		Config: config.Console, Keys: s.Keys, Access: s.Access, NameClaim: config.Access.OIDC.NameClaim, PublicURL: config.PublicURL,
		Recorder: operators.Recorder, Clock: clock.RealClock{}, Log: s.Log, Metrics: s.HTTP,
	})
	if err != nil {
		return nil, err
	}

	pages := tenant.New(tenant.Options{
		DB: operators.DB, Instances: operators.Instances, Operations: operators.Operations, Kubeconfig: operators.UserKubeconfig,
		Clock: operators.Clock, Log: s.Log,
		Describe: func(record process.Record, plan string) (string, int) {
			now := operators.Clock.Now()
			forecast := operators.Estimator.Forecast(record, plan, now)

			return broker.OperationText(record, forecast, now), forecast.Percent
		},
	})

	options := console.Options{
		API: operator.New(operators), PublicURL: config.PublicURL, CanLogOut: func(ctx context.Context) bool { return session.FromContext(ctx).CanLogOut },
		Live: console.Live{
			Position: operators.EventStreams.Publisher.Position, Read: operators.EventStreams.Reader.Read, Uncounted: operators.EventStreams.Uncounted,
			Expires: func(ctx context.Context) time.Time { return session.FromContext(ctx).Expires }, Clock: clock.RealClock{},
		},
	}

	if served.bundles != nil {
		options.Bundles = served.bundles
	}

	return sessions.Handler(console.New(options), pages), nil
}

// dashboard returns the URL of an instance's dashboard, with the placeholder {instance_id}. It returns an empty string if
// instances have no dashboard.
func (c Config) dashboard() string {
	if c.DashboardURL != "" || !c.Console.Enabled || c.PublicURL == "" {
		return c.DashboardURL
	}

	return strings.TrimSuffix(c.PublicURL, "/") + session.Home + "instances/{instance_id}"
}
