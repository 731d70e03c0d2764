package notify

import (
	"context"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/sirupsen/logrus"
	"k8s.io/utils/clock"

	"github.com/environment-broker/environment-broker/storage/notifications"
)

// scrapeTimeout limits the database query that each scrape makes.
const scrapeTimeout = 2 * time.Second

// Metrics is a prometheus.Collector that reports the number of undelivered messages, and counts messages by the result of their
// delivery. Each scrape queries the database. While the database is down, the numbers of undelivered messages are absent.
type Metrics struct {
	store  *notifications.Store
	clock  clock.PassiveClock
	log    logrus.FieldLogger
	counts *prometheus.CounterVec
}

// The values of the result label.
const (
	resultDelivered = "delivered"
	resultGivenUp   = "given up"
)

// NewMetrics returns a collector that reads the undelivered messages from store.
func NewMetrics(store *notifications.Store, clock clock.PassiveClock, log logrus.FieldLogger) *Metrics {
	metrics := &Metrics{store: store, clock: clock, log: log, counts: prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "environment_broker_notifications_total",
		Help: "Messages about runtime maintenance that this replica has sent, by result: delivered, given up (after five minutes, or " +
			"because they were rejected).",
	}, []string{"result"})}

	// The series must exist before the first message, or else an alert would miss that message.
	for _, result := range []string{resultDelivered, resultGivenUp} {
		metrics.counts.WithLabelValues(result)
	}

	return metrics
}

// ended counts a message whose delivery has ended, by result.
func (m *Metrics) ended(delivered bool) {
	result := resultGivenUp
	if delivered {
		result = resultDelivered
	}

	m.counts.WithLabelValues(result).Inc()
}

func pendingMetric() *prometheus.Desc {
	return prometheus.NewDesc("environment_broker_notifications_pending",
		"Messages about runtime maintenance that are not delivered yet. All replicas report the same value.", nil, nil)
}

func oldestMetric() *prometheus.Desc {
	return prometheus.NewDesc("environment_broker_notifications_oldest_seconds",
		"Age of the oldest message that is not delivered yet, or 0. All replicas report the same value.", nil, nil)
}

// Describe implements prometheus.Collector.
func (m *Metrics) Describe(descriptions chan<- *prometheus.Desc) {
	m.counts.Describe(descriptions)

	descriptions <- pendingMetric()

	descriptions <- oldestMetric()
}

// Collect implements prometheus.Collector.
func (m *Metrics) Collect(metrics chan<- prometheus.Metric) {
	m.counts.Collect(metrics)

	ctx, cancel := context.WithTimeout(context.Background(), scrapeTimeout)
	defer cancel()

	count, oldest, err := m.store.Backlog(ctx)
	if err != nil {
		m.log.WithError(err).Warn("metrics: counting notifications failed")

		return
	}

	age := 0.0
	if count > 0 {
		age = max(0, m.clock.Since(oldest)).Seconds()
	}

	metrics <- prometheus.MustNewConstMetric(pendingMetric(), prometheus.GaugeValue, float64(count))

	metrics <- prometheus.MustNewConstMetric(oldestMetric(), prometheus.GaugeValue, age)
}
