package enginetelemetry

import (
	"context"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/sirupsen/logrus"
	"k8s.io/utils/clock"

	"github.com/environment-broker/environment-broker/storage/operations"
)

// queueTimeout bounds the query of a scrape, which a healthy database answers within milliseconds.
const queueTimeout = 2 * time.Second

// QueueDepths counts unfinished operations by kind and state; *operations.Store implements it.
type QueueDepths interface {
	QueueDepths(ctx context.Context) ([]operations.QueueDepth, error)
}

// queue reads the number and age of unfinished operations from the database at each scrape, so all replicas report the same.
type queue struct {
	store QueueDepths
	clock clock.PassiveClock
	log   logrus.FieldLogger

	unfinished, oldest *prometheus.Desc
}

// Queue returns the metrics of pending and running operations. Each scrape queries the database, at most for queueTimeout. While the database
// is down the metrics are missing, which alert rules must expect.
func Queue(store QueueDepths, clock clock.PassiveClock, log logrus.FieldLogger) prometheus.Collector {
	describe := func(name, help string) *prometheus.Desc {
		return prometheus.NewDesc(prometheus.BuildFQName(namespace, "", name), help, []string{labelKind, labelState}, nil)
	}

	return queue{
		store: store, clock: clock, log: log,
		unfinished: describe("operations_unfinished",
			"Unfinished operations in the database, by state: pending, in progress, canceling. All replicas report the same."),
		oldest: describe("operations_oldest_seconds",
			"Age of the oldest unfinished operation, by state. All replicas report the same."),
	}
}

// Describe implements prometheus.Collector.
func (q queue) Describe(descriptions chan<- *prometheus.Desc) {
	descriptions <- q.unfinished

	descriptions <- q.oldest
}

// Collect implements prometheus.Collector.
func (q queue) Collect(metrics chan<- prometheus.Metric) {
	ctx, cancel := context.WithTimeout(context.Background(), queueTimeout)
	defer cancel()

	found, err := q.store.QueueDepths(ctx)
	if err != nil {
		q.log.WithError(err).Warn("metrics: counting unfinished operations failed")

		return
	}

	for _, each := range found {
		labels := []string{each.Kind, string(each.State)}
		age := max(0, q.clock.Since(each.Oldest.Time)).Seconds()

		metrics <- prometheus.MustNewConstMetric(q.unfinished, prometheus.GaugeValue, float64(each.Count), labels...)

		metrics <- prometheus.MustNewConstMetric(q.oldest, prometheus.GaugeValue, age, labels...)
	}
}
