package sealcount

import (
	"context"
	"embed"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/sirupsen/logrus"
	"k8s.io/utils/clock"

	"github.com/environment-broker/environment-broker/internal/failure"
	"github.com/environment-broker/environment-broker/internal/program/lifecycle"
	"github.com/environment-broker/environment-broker/internal/secret"
	"github.com/environment-broker/environment-broker/storage"
)

const (
	// WarnAt is half of the limit for AES-GCM. Once a key has sealed this number of values, the counter warns that the key must be
	// replaced.
	WarnAt = 1 << 31

	interval = time.Minute
	// warnInterval is the time between two warnings by the same replica.
	warnInterval = time.Hour
	// stopTimeout limits the duration of the last write when a replica stops.
	stopTimeout = 5 * time.Second
)

//go:embed migrations/*.sql
var migrations embed.FS

// Options configures a Counter.
type Options struct {
	DB    *storage.DB
	Keys  *secret.Keyring
	Clock clock.WithTicker
	Log   logrus.FieldLogger
	// Metrics registers the metric. A registry can serve only one Counter.
	Metrics prometheus.Registerer
}

// Counter adds the number of values that a replica has sealed to the count of all replicas. Its methods must not be called
// concurrently.
type Counter struct {
	Options

	total *prometheus.GaugeVec
	// stored is the part of Keys.Sealed that was already added to the count in the database.
	stored int64
	// warned is the time of the last warning.
	warned time.Time
}

// Open migrates the table, registers the metric and returns a Counter.
func Open(ctx context.Context, options Options) (*Counter, error) {
	if err := options.DB.Migrate(ctx, "seal_counts", migrations, "migrations"); err != nil {
		return nil, err
	}

	c := &Counter{Options: options, total: prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "environment_broker_sealed_values",
		Help: "Values that all replicas have sealed with the first key of APP_DATABASE_SECRET_KEYS. Replace the key before the count reaches 4294967296.",
	}, []string{"key"})}
	options.Metrics.MustRegister(c.total)

	return c, nil
}

// Part returns a lifecycle.Part that calls Store every minute and when the replica stops.
func (c *Counter) Part() lifecycle.Part {
	periodic := lifecycle.Periodic{Name: "seal counter", Every: interval, Work: c.Store, Clock: c.Clock, Log: c.Log}.Part()

	return lifecycle.Part{Name: periodic.Name, Run: func(ctx context.Context) error {
		if err := periodic.Run(ctx); err != nil {
			return err
		}

		last, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopTimeout)
		defer cancel()

		if err := c.Store(last); err != nil {
			c.Log.WithError(err).Warn("the count of sealed values was not stored")
		}

		return nil
	}}
}

// Store adds the values that were sealed since the last call, updates the metric, and warns if the key has sealed WarnAt values.
// If a call fails, the next call adds the same values again, so that they may be counted twice.
func (c *Counter) Store(ctx context.Context) error {
	key, sealed := c.Keys.Sealed()

	total, err := c.add(ctx, key, sealed-c.stored)
	if err != nil {
		return failure.While(err, "counting sealed values")
	}

	c.stored = sealed
	c.total.WithLabelValues(key).Set(float64(total))

	if now := c.Clock.Now(); total >= WarnAt && now.Sub(c.warned) >= warnInterval {
		c.warned = now
		c.Log.WithFields(logrus.Fields{"key": key, "values": total}).Warn("the first key of APP_DATABASE_SECRET_KEYS has sealed more than 2^31 values: " +
			"replace it before the count reaches 2^32, as docs/operator/keys.md describes")
	}

	return nil
}

// add adds the difference to the count of all replicas, and returns the new count. If the difference is 0, it only reads the
// count.
func (c *Counter) add(ctx context.Context, key string, difference int64) (int64, error) {
	if difference == 0 {
		counts, err := storage.Select[int64](ctx, c.DB.Reader(), `SELECT count FROM seal_counts WHERE key = ?`, key)
		if err != nil || len(counts) == 0 {
			return 0, err
		}

		return counts[0], nil
	}

	return storage.Get[int64](ctx, c.DB.Writer(), `INSERT INTO seal_counts (key, count) VALUES (?, ?)
		ON CONFLICT (key) DO UPDATE SET count = seal_counts.count + excluded.count RETURNING count`, key, difference)
}
