package replica

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

	"github.com/environment-broker/environment-broker/internal/audit/delivery"
	"github.com/environment-broker/environment-broker/internal/auth"
	"github.com/environment-broker/environment-broker/internal/httpserver"
	"github.com/environment-broker/environment-broker/internal/logging"
	"github.com/environment-broker/environment-broker/internal/program"
	"github.com/environment-broker/environment-broker/internal/program/lifecycle"
	"github.com/environment-broker/environment-broker/internal/secret"
	"github.com/environment-broker/environment-broker/internal/tracing"
	"github.com/environment-broker/environment-broker/storage"
	"github.com/environment-broker/environment-broker/storage/auditlog"
	"github.com/environment-broker/environment-broker/storage/operations"
	"github.com/environment-broker/environment-broker/storage/sealcount"
	"github.com/environment-broker/environment-broker/storage/writecheck"
)

// stopLimit is the maximum time that a replica takes to stop after the shutdown delay. It is longer than the grace period of the
// engine. The sum of stopLimit and the default shutdown delay is less than 30 seconds, after which Kubernetes kills a container.
const stopLimit = 25 * time.Second

// Replica is one process of a service. Call New, Serve and Run in this order: New opens the database, Serve binds the addresses,
// and Run runs the parts. If Serve or anything else fails before Run is called, call Close instead of Run.
type Replica struct {
	// Access authenticates clients. A service can add files to Access.Files before it calls Serve.
	Access *auth.Access
	DB     *storage.DB
	// Keys contains the keys that seal secrets in the database.
	Keys *secret.Keyring
	Log  logrus.FieldLogger
	// HTTP holds the request metrics of the API. The service passes HTTP to its handler.
	HTTP *httpserver.Metrics
	// Tracing is nil if tracing is off. Do not call the methods Start and Sampled of a nil Tracing; its other methods do nothing.
	Tracing *tracing.Tracing

	config Config
	health *httpserver.Health
	// writes tests whether the database accepts writes. Each readiness probe runs it.
	writes *writecheck.Check
	seals  *sealcount.Counter
	api    *httpserver.Server
	status *httpserver.Server
	parts  []lifecycle.Part
}

// New returns a replica of the named service and opens its database. It does not migrate the tables of the service: each store
// migrates its own tables when it is opened. New logs the result of Config.Warnings. Errors name the invalid variables.
func New(ctx context.Context, name string, config Config, log logrus.FieldLogger) (*Replica, error) {
	for _, warning := range config.Warnings() {
		log.Warn(warning)
	}

	replica := &Replica{Log: log, config: config}
	replica.health = httpserver.NewHealth(func(ctx context.Context) error { return replica.writes.Run(ctx) }, log)

	replica.HTTP = httpserver.NewMetrics(replica.Metrics())

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

	if replica.writes, err = writecheck.Open(ctx, replica.DB, clock.RealClock{}); err != nil {
		return nil, errors.Join(err, replica.Close())
	}

	replica.seals, err = sealcount.Open(ctx, sealcount.Options{
		DB: replica.DB, Keys: replica.Keys, Clock: clock.RealClock{}, Log: log, Metrics: replica.Metrics(),
	})
	if err != nil {
		return nil, errors.Join(err, replica.Close())
	}

	return replica, nil
}

// AuditParts returns the parts that maintain the audit log: its hash chain, the delivery to the configured collector, and the
// removal of old entries and operations. If an archive is configured, entries are written to it before they are removed. service
// is the name of the service, and removal contains the rules for removing its operations. busy becomes auditlog.ChainOptions.Busy
// and may be nil.
func (r *Replica) AuditParts(service string, entries *auditlog.Store, removal operations.Removal, busy func() bool) ([]lifecycle.Part, error) {
	collector, err := delivery.New(r.config.AuditDelivery, service, r.Access.Files)
	if err != nil {
		return nil, fmt.Errorf("%sAUDIT_DELIVERY_URL: %w", program.Prefix, err)
	}

	chainer := entries.Chain(auditlog.ChainOptions{Clock: clock.RealClock{}, Log: r.Log, Metrics: r.Metrics(), Busy: busy})
	deliverer := entries.Delivery(auditlog.DeliveryOptions{
		Collector: collector, Chainer: chainer, Clock: clock.RealClock{}, Log: r.Log, Metrics: r.Metrics(),
	})

	if r.config.AuditArchive != "" {
		entries.ArchiveTo(auditlog.Archive{Dir: r.config.AuditArchive, Service: service, Chainer: chainer})
	}

	return []lifecycle.Part{
		chainer.Part(), deliverer.Part(), entries.Retention(clock.RealClock{}, r.Log).Part(),
		entries.OperationRetention(removal, clock.RealClock{}, r.Log).Part(),
	}, nil
}

// Metrics returns the registry for the metrics of the service.
func (r *Replica) Metrics() *prometheus.Registry { return r.health.Registry() }

// Serve binds the addresses and sets the order of the parts: tracing, the status server, the seal counter, the parts of Access,
// the given parts, the API server, readiness. The parts stop in reverse order, so the replica first becomes not ready, and a
// part can use all earlier parts until it has ended.
func (r *Replica) Serve(ctx context.Context, handler http.Handler, parts ...lifecycle.Part) error {
	var err error

	if r.api, err = httpserver.Listen(ctx, r.config.Address, r.Tracing.Receive(handler), r.config.ShutdownDelay); err != nil {
		return fmt.Errorf("%sADDRESS: %w", program.Prefix, err)
	}

	r.api.UseTLS(r.Access.TLS, r.Log)

	if r.status, err = httpserver.Listen(ctx, r.config.StatusAddress, r.health.Handler(), 0); err != nil {
		return fmt.Errorf("%sSTATUS_ADDRESS: %w", program.Prefix, err)
	}

	r.parts = slices.Concat([]lifecycle.Part{r.Tracing.Part(), {Name: "status server", Run: r.status.Run}, r.seals.Part()}, r.Access.Parts,
		parts, []lifecycle.Part{
			{Name: "api server", Run: r.api.Run},
			{Name: "readiness", Run: r.health.Run},
		})

	return nil
}

// Address returns the host and port of the API.
func (r *Replica) Address() string { return r.api.Address() }

// StatusAddress returns the host and port of the endpoints for health, readiness and metrics.
func (r *Replica) StatusAddress() string { return r.status.Address() }

// Run runs the parts until the context ends or a part fails, then stops them and closes the database. It returns the errors of
// all parts.
func (r *Replica) Run(ctx context.Context) error {
	build := program.ReadBuild()
	r.Log.WithFields(logrus.Fields{
		logging.Address: r.Address(), logging.Version: build.Version, logging.Commit: build.Commit,
	}).Info("service started")

	return errors.Join(lifecycle.Run(ctx, r.Log, r.config.ShutdownDelay+stopLimit, r.parts...), r.DB.Close())
}

// Close closes the database and releases the addresses of a replica that was never run. Do not call it after Run, which also
// closes them.
func (r *Replica) Close() error {
	errs := []error{r.DB.Close(), r.Tracing.Close(context.Background())}

	for _, server := range []*httpserver.Server{r.api, r.status} {
		if server != nil {
			errs = append(errs, server.Close())
		}
	}

	return errors.Join(errs...)
}
