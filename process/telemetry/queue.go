package telemetry

import (
	"context"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/sirupsen/logrus"
	"k8s.io/utils/clock"

	"github.com/environment-broker/environment-broker/storage/operations"
)

// queueTimeout bounds the database query that each scrape makes. A healthy database responds within milliseconds; Prometheus
// gives up after ten seconds by default.
const queueTimeout = 2 * time.Second

// QueueDepths counts unfinished operations and their leases by kind and state; *operations.Store implements it.
type QueueDepths interface {
	QueueDepths(ctx context.Context, now time.Time) ([]operations.QueueDepth, error)
}

// Values of the state label of the leases metric.
const (
	leaseHeld    = "held"
	leaseExpired = "expired"
)

// queue is a collector that queries the number, age and leases of unfinished operations at each scrape. All replicas share the database,
// so they report the same values.
type queue struct {
	store QueueDepths
	clock clock.PassiveClock
	log   logrus.FieldLogger

	unfinished, oldest, leases *prometheus.Desc
}

// Queue returns a collector for the number, the age and the leases of unfinished operations. Each scrape queries the database for at most
// queueTimeout. During an outage of the database the metrics are absent; alert rules must not treat absent metrics as an empty
// queue.
func Queue(store QueueDepths, clock clock.PassiveClock, log logrus.FieldLogger) prometheus.Collector {
	describe := func(name, help string) *prometheus.Desc {
		return prometheus.NewDesc(prometheus.BuildFQName(namespace, "", name), help, []string{labelKind, labelState}, nil)
	}

	return queue{
		store: store, clock: clock, log: log,
		unfinished: describe("operations_unfinished",
			"Unfinished operations in the database, by kind and state: pending, in progress, canceling. All replicas report the same value."),
		oldest: describe("operations_oldest_seconds",
			"Age of the oldest unfinished operation, by kind and state. All replicas report the same value."),
		leases: describe("leases",
			"Leases of operations in the database, by kind and state: held, expired (the replica has stopped; another one takes the operation over within seconds). All replicas report the same value."),
	}
}

// Describe implements prometheus.Collector.
func (q queue) Describe(descriptions chan<- *prometheus.Desc) {
	descriptions <- q.unfinished

	descriptions <- q.oldest

	descriptions <- q.leases
}

// Collect implements prometheus.Collector.
func (q queue) Collect(metrics chan<- prometheus.Metric) {
	ctx, cancel := context.WithTimeout(context.Background(), queueTimeout)
	defer cancel()

	found, err := q.store.QueueDepths(ctx, q.clock.Now())
	if err != nil {
		q.log.WithError(err).Warn("metrics: counting unfinished operations failed")

		return
	}

	type lease struct{ kind, state string }

	leases := map[lease]int{}

	for _, each := range found {
		labels := []string{each.Kind, string(each.State)}
		age := max(0, q.clock.Since(each.Oldest.Time)).Seconds()

		metrics <- prometheus.MustNewConstMetric(q.unfinished, prometheus.GaugeValue, float64(each.Count), labels...)

		metrics <- prometheus.MustNewConstMetric(q.oldest, prometheus.GaugeValue, age, labels...)

		leases[lease{each.Kind, leaseHeld}] += each.Leased - each.Expired
		leases[lease{each.Kind, leaseExpired}] += each.Expired
	}

	for one, count := range leases {
		metrics <- prometheus.MustNewConstMetric(q.leases, prometheus.GaugeValue, float64(count), one.kind, one.state)
	}
}
