package upstream

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// Values of the reason label, which states why a call was not made.
const (
	refusedLimit = "limit"
	refusedOpen  = "breaker_open"
)

// metrics holds the metrics of one System. The constant system label distinguishes the Systems of a process. The registry
// combines the metrics into one prometheus.Collector.
type metrics struct {
	*prometheus.Registry

	calls    *prometheus.CounterVec
	refused  *prometheus.CounterVec
	duration prometheus.Histogram
}

// newMetrics returns the metrics of the system. The gauges read the status of the system at each scrape.
func newMetrics(system *System) *metrics {
	const namespace = "environment_broker_upstream"

	labels := prometheus.Labels{"system": system.options.Name}
	gauge := func(name, help string, value func(Status) float64) prometheus.Collector {
		return prometheus.NewGaugeFunc(prometheus.GaugeOpts{Namespace: namespace, Name: name, Help: help, ConstLabels: labels},
			func() float64 { return value(system.Status()) })
	}

	made := &metrics{
		Registry: prometheus.NewRegistry(),
		calls: prometheus.NewCounterVec(prometheus.CounterOpts{
			Namespace: namespace, Name: "calls_total", ConstLabels: labels,
			Help: "Calls made, by outcome: answered, server_error (HTTP 5xx), timed_out, unreachable, canceled (by the caller).",
		}, []string{"outcome"}),
		refused: prometheus.NewCounterVec(prometheus.CounterOpts{
			Namespace: namespace, Name: "refused_total", ConstLabels: labels,
			Help: "Calls not made, by reason: limit (too many at the same time), breaker_open.",
		}, []string{"reason"}),
		duration: prometheus.NewHistogram(prometheus.HistogramOpts{
			Namespace: namespace, Name: "call_duration_seconds", ConstLabels: labels,
			Help:    "Duration of calls until the end of the response.",
			Buckets: []float64{.005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60, 120},
		}),
	}

	made.MustRegister(made.calls, made.refused, made.duration,
		gauge("calls_in_flight", "Calls in flight.", func(s Status) float64 { return float64(s.InFlight) }),
		gauge("calls_limit", "Maximum number of concurrent calls.", func(s Status) float64 { return float64(s.Calls) }),
		gauge("breaker_state", "State of the circuit breaker. 0: closed, calls are made. 1: half-open, one call is made as a trial. 2: open, no call is made.",
			func(s Status) float64 { return map[State]float64{Closed: 0, HalfOpen: 1, Open: 2}[s.State] }),
	)

	// All series start with the value 0. Otherwise, a rate would miss the first increment.
	for _, label := range outcomes() {
		made.calls.WithLabelValues(label)
	}

	for _, label := range []string{refusedLimit, refusedOpen} {
		made.refused.WithLabelValues(label)
	}

	return made
}

// observe records a call that has ended.
func (m *metrics) observe(result outcome, took time.Duration) {
	m.calls.WithLabelValues(result.label).Inc()
	m.duration.Observe(took.Seconds())
}
