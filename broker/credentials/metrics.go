package credentials

import (
	"context"
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/sirupsen/logrus"
	"k8s.io/utils/clock"

	"github.com/environment-broker/environment-broker/storage/outsideobjects"
)

const (
	// scrapeTimeout limits the database query that each scrape makes.
	scrapeTimeout = 2 * time.Second
	// expiringWithin is the remaining validity below which a kubeconfig counts as expiring.
	expiringWithin = time.Hour
)

// The results of renewals and checks. They are values of a metric label.
const (
	resultRenewed  = "renewed"
	resultRestored = "restored"
	resultCurrent  = "current"
	resultRepaired = "repaired"
	resultFailed   = "failed"
)

// Results counts renewals or checks.
type Results struct{ counter *prometheus.CounterVec }

// NewResults returns a counter of renewals, with a label for the system. It is a prometheus.Collector.
func NewResults(systems ...string) *Results {
	results := &Results{prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "environment_broker_kubeconfig_renewals_total",
		Help: "Renewals by this replica of runtime kubeconfigs in other systems, by system and result: renewed, restored (the Secret was missing), failed.",
	}, []string{"system", "result"})}

	// Create the series of all results. Otherwise, Prometheus would not see the first increment as an increase.
	for _, system := range systems {
		for _, result := range []string{resultRenewed, resultRestored, resultFailed} {
			results.counter.WithLabelValues(system, result)
		}
	}

	return results
}

// NewChecks returns a counter of checks of Secrets in runtimes. It is a prometheus.Collector.
func NewChecks() *Results {
	checks := &Results{prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "environment_broker_service_manager_checks_total",
		Help: "Checks by this replica of the SAP BTP service operator's Secrets in runtimes, by result: current, repaired, failed.",
	}, []string{"result"})}

	for _, result := range []string{resultCurrent, resultRepaired, resultFailed} {
		checks.counter.WithLabelValues(result)
	}

	return checks
}

// count increments the series with the given label values.
func (r *Results) count(labels ...string) { r.counter.WithLabelValues(labels...).Inc() }

// Describe implements prometheus.Collector.
func (r *Results) Describe(descriptions chan<- *prometheus.Desc) { r.counter.Describe(descriptions) }

// Collect implements prometheus.Collector.
func (r *Results) Collect(metrics chan<- prometheus.Metric) { r.counter.Collect(metrics) }

// Metrics is a prometheus.Collector that counts kubeconfigs. Each scrape queries the database. While the database is down, the
// metrics are absent. All fields are required.
type Metrics struct {
	Objects *outsideobjects.Store
	// Systems are the systems that are turned on. Kubeconfigs of other systems are not renewed and not counted.
	Systems []string
	Clock   clock.PassiveClock
	Log     logrus.FieldLogger
}

func totalMetric() *prometheus.Desc {
	return prometheus.NewDesc("environment_broker_kubeconfigs",
		"Runtime kubeconfigs in other systems, by system. All replicas report the same value.", []string{"system"}, nil)
}

func expiringMetric() *prometheus.Desc {
	return prometheus.NewDesc("environment_broker_kubeconfigs_expiring",
		"Runtime kubeconfigs in other systems that have expired or expire within an hour, by system. All replicas report the same value.",
		[]string{"system"}, nil)
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

	counts, err := m.Objects.CountCredentials(ctx, m.Clock.Now().Add(expiringWithin))
	if err != nil {
		m.Log.WithError(err).Warn("metrics: counting kubeconfigs failed")

		return
	}

	for _, system := range m.Systems {
		of := outsideobjects.CredentialCount{}
		if at := slices.IndexFunc(counts, func(count outsideobjects.CredentialCount) bool { return count.System == system }); at >= 0 {
			of = counts[at]
		}

		metrics <- prometheus.MustNewConstMetric(totalMetric(), prometheus.GaugeValue, float64(of.Total), system)

		metrics <- prometheus.MustNewConstMetric(expiringMetric(), prometheus.GaugeValue, float64(of.Expiring), system)
	}
}
