// Package replica is what a running service is made of besides its own parts: users, a database, a server for its API and one that
// tells how it is, and the order in which all of it starts and stops.
package replica

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/sirupsen/logrus"
	"k8s.io/utils/clock"

	"github.com/environment-broker/environment-broker/internal/auth"
	"github.com/environment-broker/environment-broker/internal/httpserver"
	"github.com/environment-broker/environment-broker/internal/lifecycle"
	"github.com/environment-broker/environment-broker/internal/logging"
	"github.com/environment-broker/environment-broker/internal/secret"
	"github.com/environment-broker/environment-broker/internal/tracing"
	"github.com/environment-broker/environment-broker/storage"
)

// stopLimit bounds the stop of a replica once its listeners have begun to close. It is longer than the engine's grace period.
const stopLimit = 25 * time.Second

// Replica is one process of a service: its database is open, its addresses are bound once Serve was called.
type Replica struct {
	// Access is how clients come in. Parts may add files that are to be followed before Serve is called.
	Access *auth.Access
	DB     *storage.DB
	// Keys are for what is secret at rest.
	Keys *secret.Keyring
	Log  logrus.FieldLogger
	// Tracing is where spans are told; nil when nobody wants them.
	Tracing *tracing.Tracing

	config Config
	health *httpserver.Health
	api    *httpserver.Server
	status *httpserver.Server
	parts  []lifecycle.Part
}

// New checks the configuration and opens the database. Errors name the variable that has to be changed.
func New(ctx context.Context, name string, config Config, log logrus.FieldLogger) (*Replica, error) {
	replica := &Replica{Log: log, config: config}
	replica.health = httpserver.NewHealth(func(ctx context.Context) error { return replica.DB.Ping(ctx) }, log)

	var err error

	replica.Access, err = auth.New(auth.Options{
		Address: config.Address, Users: config.AuthBasicUsers, Config: config.Access, Clock: clock.RealClock{}, Log: log, Metrics: replica.Metrics(),
	})
	if err != nil {
		return nil, err
	}

	replica.Keys, err = config.Database.Keys()
	if err != nil {
		return nil, err
	}

	database, err := config.Database.Storage()
	if err != nil {
		return nil, err
	}

	if replica.Tracing, err = tracing.New(ctx, name, config.Tracing, log); err != nil {
		return nil, err
	}

	if replica.DB, err = storage.Open(ctx, database); err != nil {
		return nil, errors.Join(err, replica.Tracing.Close(ctx))
	}

	return replica, nil
}

// Metrics is where the parts register what they measure.
func (r *Replica) Metrics() *prometheus.Registry { return r.health.Registry() }

// Serve binds the addresses and sets what runs: the parts in their order, between the server that tells how the service is and the
// one of its API. They stop in the opposite order, after the service has said that it is not ready any more. So whatever a part needs
// is there until that part has ended.
func (r *Replica) Serve(ctx context.Context, handler http.Handler, parts ...lifecycle.Part) error {
	var err error

	if r.api, err = httpserver.Listen(ctx, r.config.Address, r.Tracing.Receive(handler), r.config.ShutdownDelay); err != nil {
		return err
	}

	r.api.UseTLS(r.Access.TLS, r.Log)

	if r.status, err = httpserver.Listen(ctx, r.config.StatusAddress, r.health.Handler(), 0); err != nil {
		return err
	}

	r.parts = slices.Concat([]lifecycle.Part{r.Tracing.Part(), {Name: "status server", Run: r.status.Run}}, r.Access.Parts, parts, []lifecycle.Part{
		{Name: "api server", Run: r.api.Run},
		{Name: "readiness", Run: r.health.Run},
	})

	return nil
}

// Address is where the API is.
func (r *Replica) Address() string { return r.api.Address() }

// StatusAddress is where health, readiness and metrics are told.
func (r *Replica) StatusAddress() string { return r.status.Address() }

// Run serves and works until the context ends, then stops in order.
func (r *Replica) Run(ctx context.Context) error {
	r.Log.WithField(logging.Address, r.Address()).Info("service runs")

	return errors.Join(lifecycle.Run(ctx, r.Log, r.config.ShutdownDelay+stopLimit, r.parts...), r.DB.Close())
}

// Close gives back what a replica that was never run has taken.
func (r *Replica) Close() error {
	errs := []error{r.DB.Close(), r.Tracing.Close(context.Background())}

	for _, server := range []*httpserver.Server{r.api, r.status} {
		if server != nil {
			errs = append(errs, server.Close())
		}
	}

	return errors.Join(errs...)
}
