package cleanup

import (
	"context"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/sirupsen/logrus"
	"k8s.io/utils/clock"

	"github.com/environment-broker/environment-broker/storage/leftovers"
)

// scrapeTimeout limits the database query that each scrape makes.
const scrapeTimeout = 2 * time.Second

// Metrics is a prometheus.Collector for the number and age of leftovers. Each scrape queries the database. While the database is
// down, the metrics are absent. All fields are required.
type Metrics struct {
	Leftovers *leftovers.Store
	Clock     clock.PassiveClock
	Log       logrus.FieldLogger
}

func countMetric() *prometheus.Desc {
	return prometheus.NewDesc("environment_broker_leftovers",
		"Leftovers of deletions and suspensions, by the step that was not completed. All replicas report the same value.",
		[]string{"step"}, nil)
}

func oldestMetric() *prometheus.Desc {
	return prometheus.NewDesc("environment_broker_leftovers_oldest_seconds",
		"Age of the oldest leftover, by step. All replicas report the same value.", []string{"step"}, nil)
}

// Describe implements prometheus.Collector.
func (m Metrics) Describe(descriptions chan<- *prometheus.Desc) {
	descriptions <- countMetric()

	descriptions <- oldestMetric()
}

// Collect implements prometheus.Collector.
func (m Metrics) Collect(metrics chan<- prometheus.Metric) {
	ctx, cancel := context.WithTimeout(context.Background(), scrapeTimeout)
	defer cancel()

	counts, err := m.Leftovers.CountSteps(ctx)
	if err != nil {
		m.Log.WithError(err).Warn("metrics: counting leftovers failed")

		return
	}

	for _, each := range counts {
		metrics <- prometheus.MustNewConstMetric(countMetric(), prometheus.GaugeValue, float64(each.Count), each.Step)

		age := max(0, m.Clock.Since(each.Oldest)).Seconds()
		metrics <- prometheus.MustNewConstMetric(oldestMetric(), prometheus.GaugeValue, age, each.Step)
	}
}
