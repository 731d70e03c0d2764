package auditlog

import (
	"context"
	"fmt"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/sirupsen/logrus"
	"k8s.io/utils/clock"

	"github.com/environment-broker/environment-broker/internal/audit/chain"
	"github.com/environment-broker/environment-broker/internal/failure"
	"github.com/environment-broker/environment-broker/internal/program/lifecycle"
	"github.com/environment-broker/environment-broker/storage"
)

const (
	// deliveryInterval is the interval at which new records are delivered. After each failure, the interval doubles, up to
	// maxDeliveryPause.
	deliveryInterval = 2 * time.Second
	maxDeliveryPause = time.Minute
	// deliveryBatch is the maximum number of records in one message. ChainRecords limits their total size.
	deliveryBatch = 100
)

// Collector receives the records of the chain. Package delivery implements it.
type Collector interface {
	Send(ctx context.Context, records []chain.Record) error
}

// DeliveryOptions are the dependencies of a Delivery.
type DeliveryOptions struct {
	// Collector is nil if delivery is disabled.
	Collector Collector
	// Chainer determines which replica delivers: the one that adds records to the chain.
	Chainer *Chainer
	Clock   clock.WithTicker
	Log     logrus.FieldLogger
	// Metrics registers the metrics. A registry can serve only one Delivery.
	Metrics prometheus.Registerer
}

// Delivery sends the records of the chain to a collector, in order and at least once. The database stores the number of the last
// delivered record.
type Delivery struct {
	DeliveryOptions

	store    *Store
	failures int
	// retryAt is the time of the next attempt after a failure.
	retryAt time.Time
	lag     prometheus.Gauge
	failed  prometheus.Counter
}

// Delivery registers the metrics and returns a Delivery, whose Part the service must run.
func (s *Store) Delivery(options DeliveryOptions) *Delivery {
	delivery := &Delivery{
		DeliveryOptions: options, store: s,
		lag: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "environment_broker_audit_delivery_lag_seconds",
			Help: "Age of the oldest record of the audit log that the collector has not confirmed. 0 without a collector, or if another replica delivers.",
		}),
		failed: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "environment_broker_audit_delivery_failures_total",
			Help: "Failed attempts to deliver records of the audit log.",
		}),
	}
	options.Metrics.MustRegister(delivery.lag, delivery.failed)

	return delivery
}

// Part returns a lifecycle.Part that runs Deliver periodically. If there is no collector, the lifecycle.Part does nothing.
func (d *Delivery) Part() lifecycle.Part {
	return lifecycle.Periodic{Name: "audit delivery", Every: deliveryInterval, Work: d.Deliver, Clock: d.Clock, Log: d.Log}.Part()
}

// Deliver sends all records that have not been delivered. If this fails, it returns the error, and further calls do nothing until
// a pause has passed. The pause grows with each failure.
func (d *Delivery) Deliver(ctx context.Context) error {
	if d.Collector == nil || !d.Chainer.holdsLease() {
		d.lag.Set(0)

		return nil
	}

	if d.Clock.Now().Before(d.retryAt) {
		return nil
	}

	if err := d.deliverAll(ctx); err != nil {
		d.failed.Inc()

		d.failures++
		pause := min(deliveryInterval<<min(d.failures, 10), maxDeliveryPause) //nolint:mnd // prevents an overflow
		d.retryAt = d.Clock.Now().Add(pause)

		return fmt.Errorf("delivering the audit log: %w", err)
	}

	d.failures = 0
	d.lag.Set(0)

	return nil
}

// deliverAll sends batches until all records are delivered or this replica loses the lease.
func (d *Delivery) deliverAll(ctx context.Context) error {
	for d.Chainer.holdsLease() {
		delivered, err := storage.Get[int64](ctx, d.store.db.Reader(), `SELECT delivered FROM audit_chain_head WHERE id = 1`)
		if err != nil {
			return failure.While(err, "reading the last delivered record")
		}

		records, err := d.store.ChainRecords(ctx, delivered, deliveryBatch)
		if err != nil || len(records) == 0 {
			return err
		}

		d.observe(records[0])

		if err := d.Collector.Send(ctx, records); err != nil {
			return err
		}

		last := records[len(records)-1].Number
		if _, err := storage.Exec(ctx, d.store.db.Writer(), `UPDATE audit_chain_head SET delivered = ? WHERE id = 1 AND delivered = ?`,
			last, delivered); err != nil {
			return failure.While(err, "storing the last delivered record")
		}
	}

	return nil
}

// observe sets the lag metric to the age of the oldest record that is not delivered.
func (d *Delivery) observe(oldest chain.Record) {
	if at, err := time.Parse(time.RFC3339Nano, oldest.ChainedAt); err == nil {
		d.lag.Set(max(d.Clock.Since(at).Seconds(), 0))
	}
}
