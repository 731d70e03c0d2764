package upstream

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// Why a call was not made.
const (
	refusedFull = "no_turn"
	refusedOpen = "breaker_open"
)

// metrics are a guard's, each with its system as a label.
type metrics struct {
	calls    *prometheus.CounterVec
	refused  *prometheus.CounterVec
	duration prometheus.Histogram
	gauges   []prometheus.Collector
}

func newMetrics(guard *Guard) *metrics {
	const subsystem = "environment_broker_outside"

	labels := prometheus.Labels{"system": guard.options.System}
	gauge := func(name, help string, value func(Status) float64) prometheus.Collector {
		return prometheus.NewGaugeFunc(prometheus.GaugeOpts{Namespace: subsystem, Name: name, Help: help, ConstLabels: labels},
			func() float64 { return value(guard.Status()) })
	}

	made := &metrics{
		calls: prometheus.NewCounterVec(prometheus.CounterOpts{
			Namespace: subsystem, Name: "calls_total", ConstLabels: labels,
			Help: "Calls that were made, by outcome: answered, server_error (HTTP 5xx), timed_out, unreachable, canceled (by us).",
		}, []string{"outcome"}),
		refused: prometheus.NewCounterVec(prometheus.CounterOpts{
			Namespace: subsystem, Name: "refused_total", ConstLabels: labels,
			Help: "Calls that were not made, by reason: no_turn (too many at the same time), breaker_open.",
		}, []string{"reason"}),
		duration: prometheus.NewHistogram(prometheus.HistogramOpts{
			Namespace: subsystem, Name: "call_duration_seconds", ConstLabels: labels,
			Help:    "How long calls took, until their answer was read.",
			Buckets: []float64{.005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60, 120},
		}),
		gauges: []prometheus.Collector{
			gauge("calls_in_flight", "Calls under way.", func(s Status) float64 { return float64(s.InFlight) }),
			gauge("calls_limit", "How many calls may be under way at the same time.", func(s Status) float64 { return float64(s.Calls) }),
			gauge("breaker_state", "0: closed, calls are made. 1: half-open, one call is made as a trial. 2: open, no call is made.",
				func(s Status) float64 { return map[State]float64{Closed: 0, HalfOpen: 1, Open: 2}[s.State] }),
		},
	}

	// Every outcome is there from the start, so that a rate of it has something to begin from.
	for _, label := range outcomes() {
		made.calls.WithLabelValues(label)
	}

	for _, label := range []string{refusedFull, refusedOpen} {
		made.refused.WithLabelValues(label)
	}

	return made
}

func (m *metrics) observe(result outcome, took time.Duration) {
	m.calls.WithLabelValues(result.label).Inc()
	m.duration.Observe(took.Seconds())
}

func (m *metrics) collectors() []prometheus.Collector {
	return append([]prometheus.Collector{m.calls, m.refused, m.duration}, m.gauges...)
}

// Describe implements prometheus.Collector.
func (g *Guard) Describe(descriptions chan<- *prometheus.Desc) {
	for _, collector := range g.metrics.collectors() {
		collector.Describe(descriptions)
	}
}

// Collect implements prometheus.Collector.
func (g *Guard) Collect(metrics chan<- prometheus.Metric) {
	for _, collector := range g.metrics.collectors() {
		collector.Collect(metrics)
	}
}
