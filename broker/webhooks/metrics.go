package webhooks

import (
	"context"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/sirupsen/logrus"
	"k8s.io/utils/clock"

	"github.com/environment-broker/environment-broker/storage/webhooks"
)

// scrapeTimeout limits the database query that each scrape makes.
const scrapeTimeout = 2 * time.Second

// The values of the result label.
const (
	resultDelivered = "delivered"
	resultFailed    = "failed"
	resultDead      = "dead letter"
)

// Metrics is a prometheus.Collector that reports the number of undelivered events, and counts attempts by result. Each scrape
// queries the database. While the database is down, the numbers of undelivered events are absent.
type Metrics struct {
	store  *webhooks.Store
	clock  clock.PassiveClock
	log    logrus.FieldLogger
	counts *prometheus.CounterVec
}

// NewMetrics returns a collector that reads the undelivered events from store.
func NewMetrics(store *webhooks.Store, clock clock.PassiveClock, log logrus.FieldLogger) *Metrics {
	metrics := &Metrics{store: store, clock: clock, log: log, counts: prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "environment_broker_webhook_attempts_total",
		Help: "Attempts by this replica to deliver events to webhooks, by result: delivered, failed, dead letter (a last " +
			"attempt that failed, which is also counted as failed).",
	}, []string{"result"})}

	// The series must exist before the first event, or else an alert would miss that event.
	for _, result := range []string{resultDelivered, resultFailed, resultDead} {
		metrics.counts.WithLabelValues(result)
	}

	return metrics
}

func (m *Metrics) ended(result string) { m.counts.WithLabelValues(result).Inc() }

func deliveriesMetric() *prometheus.Desc {
	return prometheus.NewDesc("environment_broker_webhook_deliveries",
		"Deliveries of events to webhooks by state: pending, dead. All replicas report the same value.", []string{"state"}, nil)
}

func behindMetric() *prometheus.Desc {
	return prometheus.NewDesc("environment_broker_webhook_events_behind",
		"Events not yet examined by the webhook that is furthest behind. All replicas report the same value.", nil, nil)
}

func disabledMetric() *prometheus.Desc {
	return prometheus.NewDesc("environment_broker_webhooks_disabled", "Disabled webhooks. All replicas report the same value.", nil, nil)
}

func oldestMetric() *prometheus.Desc {
	return prometheus.NewDesc("environment_broker_webhook_oldest_seconds",
		"Age of the oldest event that is pending for an enabled webhook, or 0. All replicas report the same value.", nil, nil)
}

// Describe implements prometheus.Collector.
func (m *Metrics) Describe(descriptions chan<- *prometheus.Desc) {
	m.counts.Describe(descriptions)

	for _, description := range []*prometheus.Desc{deliveriesMetric(), behindMetric(), disabledMetric(), oldestMetric()} {
		descriptions <- description
	}
}

// Collect implements prometheus.Collector.
func (m *Metrics) Collect(metrics chan<- prometheus.Metric) {
	m.counts.Collect(metrics)

	ctx, cancel := context.WithTimeout(context.Background(), scrapeTimeout)
	defer cancel()

	backlog, err := m.store.Backlog(ctx)
	if err != nil {
		m.log.WithError(err).Warn("metrics: counting the deliveries of webhooks failed")

		return
	}

	age := 0.0
	if !backlog.Oldest.IsZero() {
		age = max(0, m.clock.Since(backlog.Oldest.Time)).Seconds()
	}

	gauge := func(description *prometheus.Desc, value float64, labels ...string) {
		metrics <- prometheus.MustNewConstMetric(description, prometheus.GaugeValue, value, labels...)
	}

	gauge(deliveriesMetric(), float64(backlog.Pending), "pending")
	gauge(deliveriesMetric(), float64(backlog.Dead), "dead")
	gauge(behindMetric(), float64(backlog.Behind))
	gauge(disabledMetric(), float64(backlog.Disabled))
	gauge(oldestMetric(), age)
}
