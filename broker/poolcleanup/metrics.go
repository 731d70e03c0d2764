package poolcleanup

import (
	"context"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/sirupsen/logrus"
	"k8s.io/utils/clock"

	"github.com/environment-broker/environment-broker/internal/environment/accountpool"
)

// scrapeTimeout limits the database query that each scrape makes.
const scrapeTimeout = 2 * time.Second

// Metrics is a prometheus.Collector that reports the ages of dirty accounts, and counts the responses of the hook. Each scrape
// queries the database.
type Metrics struct {
	records accountpool.Cleanups
	clock   clock.PassiveClock
	log     logrus.FieldLogger
	counts  *prometheus.CounterVec
}

// NewMetrics returns a collector that reads the dirty accounts from records.
func NewMetrics(records accountpool.Cleanups, clock clock.PassiveClock, log logrus.FieldLogger) *Metrics {
	metrics := &Metrics{records: records, clock: clock, log: log, counts: prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "environment_broker_pool_cleanups_total",
		Help: "Calls from this replica to the cleanup hook for dirty accounts, by result: clean (the account is free), pending, failed, unanswered.",
	}, []string{"result"})}

	for _, state := range []accountpool.CleanupState{
		accountpool.CleanupClean, accountpool.CleanupPending, accountpool.CleanupFailed, accountpool.CleanupUnanswered,
	} {
		metrics.counts.WithLabelValues(string(state))
	}

	return metrics
}

func (m *Metrics) answered(state accountpool.CleanupState) {
	m.counts.WithLabelValues(string(state)).Inc()
}

func oldestMetric() *prometheus.Desc {
	return prometheus.NewDesc("environment_broker_pool_dirty_oldest_seconds",
		"Time for which the oldest dirty account of the account pool has been dirty, by type (hyperscalerType). All replicas report the same value.",
		[]string{"type"}, nil)
}

// Describe implements prometheus.Collector.
func (m *Metrics) Describe(descriptions chan<- *prometheus.Desc) {
	m.counts.Describe(descriptions)

	descriptions <- oldestMetric()
}

// Collect implements prometheus.Collector.
func (m *Metrics) Collect(metrics chan<- prometheus.Metric) {
	m.counts.Collect(metrics)

	ctx, cancel := context.WithTimeout(context.Background(), scrapeTimeout)
	defer cancel()

	records, err := m.records.Cleanups(ctx)
	if err != nil {
		m.log.WithError(err).Warn("metrics: listing the dirty accounts failed")

		return
	}

	oldest := map[string]time.Duration{}
	for _, record := range records {
		oldest[record.Type] = max(oldest[record.Type], m.clock.Since(record.DirtySince))
	}

	for name, age := range oldest {
		metrics <- prometheus.MustNewConstMetric(oldestMetric(), prometheus.GaugeValue, age.Seconds(), name)
	}
}
