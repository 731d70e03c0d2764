package credentials

import (
	"context"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/sirupsen/logrus"
	"k8s.io/utils/clock"

	"github.com/environment-broker/environment-broker/storage/outsideobjects"
)

const (
	// scrapeTimeout bounds the query of a scrape.
	scrapeTimeout = 2 * time.Second
	// expiringWithin is the rest of the validity from which a kubeconfig counts as expiring.
	expiringWithin = time.Hour
)

// The results of renewals, which are values of a metric label.
const (
	resultRenewed  = "renewed"
	resultRestored = "restored"
	resultCurrent  = "current"
	resultRepaired = "repaired"
	resultFailed   = "failed"
)

// Results counts renewals or checks.
type Results struct{ counter *prometheus.CounterVec }

// NewResults returns the counter of renewals, which is a prometheus.Collector.
func NewResults() *Results {
	results := &Results{prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "environment_broker_kubeconfig_renewals_total",
		Help: "Renewals of kubeconfigs for Lifecycle Manager by this replica, by result: renewed, restored (the Secret was missing), failed.",
	}, []string{"result"})}

	return results.with(resultRenewed, resultRestored, resultFailed)
}

// NewChecks returns the counter of checks of Secrets in runtimes, which is a prometheus.Collector.
func NewChecks() *Results {
	checks := &Results{prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "environment_broker_service_manager_checks_total",
		Help: "Checks of the Secrets of the SAP BTP service operator in runtimes by this replica, by result: current, repaired, failed.",
	}, []string{"result"})}

	return checks.with(resultCurrent, resultRepaired, resultFailed)
}

// with creates the series of all results. Otherwise, Prometheus would not see the first increment as an increase.
func (r *Results) with(results ...string) *Results {
	for _, result := range results {
		r.counter.WithLabelValues(result)
	}

	return r
}

func (r *Results) count(result string) { r.counter.WithLabelValues(result).Inc() }

// Describe implements prometheus.Collector.
func (r *Results) Describe(descriptions chan<- *prometheus.Desc) { r.counter.Describe(descriptions) }

// Collect implements prometheus.Collector.
func (r *Results) Collect(metrics chan<- prometheus.Metric) { r.counter.Collect(metrics) }

// Metrics is a prometheus.Collector for the number of kubeconfigs. Each scrape queries the database. During an outage of the database the
// metrics are absent. All fields are required.
type Metrics struct {
	Objects *outsideobjects.Store
	Clock   clock.PassiveClock
	Log     logrus.FieldLogger
}

func totalMetric() *prometheus.Desc {
	return prometheus.NewDesc("environment_broker_kubeconfigs",
		"Kubeconfigs of runtimes that Lifecycle Manager has. All replicas report the same value.", nil, nil)
}

func expiringMetric() *prometheus.Desc {
	return prometheus.NewDesc("environment_broker_kubeconfigs_expiring",
		"Kubeconfigs of runtimes that Lifecycle Manager has and that have expired or expire within an hour. All replicas report the same value.", nil, nil)
}

// Describe implements prometheus.Collector.
func (Metrics) Describe(descriptions chan<- *prometheus.Desc) {
	descriptions <- totalMetric()

	descriptions <- expiringMetric()
}

// Collect implements prometheus.Collector.
func (m Metrics) Collect(metrics chan<- prometheus.Metric) {
	ctx, cancel := context.WithTimeout(context.Background(), scrapeTimeout)
	defer cancel()

	total, expiring, err := m.Objects.CountKubeconfigs(ctx, m.Clock.Now().Add(expiringWithin))
	if err != nil {
		m.Log.WithError(err).Warn("metrics: counting kubeconfigs failed")

		return
	}

	metrics <- prometheus.MustNewConstMetric(totalMetric(), prometheus.GaugeValue, float64(total))

	metrics <- prometheus.MustNewConstMetric(expiringMetric(), prometheus.GaugeValue, float64(expiring))
}
