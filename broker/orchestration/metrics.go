package orchestration

import (
	"context"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/sirupsen/logrus"

	"github.com/environment-broker/environment-broker/storage/orchestrations"
)

// scrapeTimeout is the time limit for the database queries of one scrape.
const scrapeTimeout = 2 * time.Second

// Metrics is a prometheus.Collector that counts unfinished orchestrations and their targets. Each scrape queries the database.
// While the database is down, the metrics are absent. All fields are required.
type Metrics struct {
	Orchestrations *orchestrations.Store
	Log            logrus.FieldLogger
}

func orchestrationsMetric() *prometheus.Desc {
	return prometheus.NewDesc("environment_broker_orchestrations",
		"Unfinished orchestrations, by kind of their upgrades and by state: pending, in progress, retrying, paused, gated, canceling. All replicas report the same value.", []string{"kind", "state"}, nil)
}

func targetsMetric() *prometheus.Desc {
	return prometheus.NewDesc("environment_broker_orchestration_targets",
		"Targets of unfinished orchestrations, by kind of their upgrades and by state. All replicas report the same value.", []string{"kind", "state"}, nil)
}

// Describe implements prometheus.Collector.
func (m Metrics) Describe(descriptions chan<- *prometheus.Desc) {
	descriptions <- orchestrationsMetric()

	descriptions <- targetsMetric()
}

// Collect implements prometheus.Collector.
func (m Metrics) Collect(metrics chan<- prometheus.Metric) {
	ctx, cancel := context.WithTimeout(context.Background(), scrapeTimeout)
	defer cancel()

	found, targets, err := m.Orchestrations.Counts(ctx)
	if err != nil {
		m.Log.WithError(err).Warn("metrics: counting orchestrations failed")

		return
	}

	for _, each := range found {
		metrics <- prometheus.MustNewConstMetric(orchestrationsMetric(), prometheus.GaugeValue, float64(each.Count), each.Kind, each.State)
	}

	for _, each := range targets {
		metrics <- prometheus.MustNewConstMetric(targetsMetric(), prometheus.GaugeValue, float64(each.Count), each.Kind, each.State)
	}
}
