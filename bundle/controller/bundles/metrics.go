package bundles

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/environment-broker/environment-broker/bundle/api/v1alpha1"
)

// Values of the result label.
const (
	resultSucceeded = "succeeded"
	resultPending   = "pending"
	resultFailed    = "failed"
	resultRejected  = "rejected"
)

type metrics struct {
	unpacks  *prometheus.CounterVec
	duration *prometheus.HistogramVec
	busy     prometheus.Gauge
	panics   prometheus.Counter
}

func newMetrics(registry prometheus.Registerer) (*metrics, error) {
	m := &metrics{
		unpacks: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "environment_broker_bundle_unpacks_total",
			Help: "Attempts to unpack a Bundle, by source and result: succeeded, pending, failed (will be retried) or rejected (will not be retried).",
		}, []string{"source", "result"}),
		duration: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "environment_broker_bundle_unpack_duration_seconds", Help: "Time from the start to the end of an attempt to unpack a Bundle.",
			Buckets: prometheus.ExponentialBuckets(0.01, 4, 9),
		}, []string{"source"}),
		busy: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "environment_broker_bundle_workers_busy", Help: "Workers of this replica that are unpacking a Bundle.",
		}),
		panics: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "environment_broker_bundle_panics_total", Help: "Attempts to unpack a Bundle that ended with a panic. Each one is a bug.",
		}),
	}

	for _, collector := range []prometheus.Collector{m.unpacks, m.duration, m.busy, m.panics} {
		if err := registry.Register(collector); err != nil {
			return nil, err
		}
	}

	return m, nil
}

func (m *metrics) record(source v1alpha1.SourceType, result outcome, took time.Duration) {
	name := resultSucceeded

	switch {
	case result.err != nil && result.terminal:
		name = resultRejected
	case result.err != nil:
		name = resultFailed
	case result.pending != "":
		name = resultPending
	}

	m.unpacks.WithLabelValues(string(source), name).Inc()
	m.duration.WithLabelValues(string(source)).Observe(took.Seconds())
}
