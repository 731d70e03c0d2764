// Package enginemetrics tells Prometheus what an engine does.
package enginemetrics

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/environment-broker/environment-broker/process"
)

const namespace = "environment_broker_engine"

const (
	labelKind    = "kind"
	labelStep    = "step"
	labelOutcome = "outcome"
	labelState   = "state"
	labelReason  = "reason"
)

// Metrics is a process.Observer. No label names an instance or an operation, so there are as many series as there are steps.
type Metrics struct {
	running      *prometheus.GaugeVec
	pickUp       *prometheus.HistogramVec
	attempts     *prometheus.CounterVec
	stepTime     *prometheus.HistogramVec
	ended        *prometheus.CounterVec
	failed       *prometheus.CounterVec
	lasted       *prometheus.HistogramVec
	claimsFailed prometheus.Counter
	leasesLost   prometheus.Counter
}

var _ process.Observer = (*Metrics)(nil)

// New registers the metrics of one engine.
func New(registerer prometheus.Registerer) *Metrics {
	counter := func(name, help string) prometheus.CounterOpts {
		return prometheus.CounterOpts{Namespace: namespace, Name: name, Help: help}
	}
	histogram := func(name, help string, buckets ...float64) prometheus.HistogramOpts {
		return prometheus.HistogramOpts{Namespace: namespace, Name: name, Help: help, Buckets: buckets}
	}

	made := &Metrics{
		running: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Namespace: namespace, Name: "operations_running", Help: "Operations that this replica's workers carry at this moment.",
		}, []string{labelKind}),
		pickUp: prometheus.NewHistogramVec(histogram("pickup_delay_seconds",
			"For how long operations were due before a worker took them up. One that waits for its turn is due from its acceptance.",
			.001, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 60, 600), []string{labelKind}),
		attempts: prometheus.NewCounterVec(counter("step_attempts_total",
			"Runs of steps, by outcome as in the timeline of an operation: done, waiting, retrying, not completed, failed, handed back."),
			[]string{labelKind, labelStep, labelOutcome}),
		stepTime: prometheus.NewHistogramVec(histogram("step_duration_seconds",
			"How long runs of steps took.", .001, .005, .025, .1, .5, 1, 5, 10, 30, 60, 120), []string{labelKind, labelStep}),
		ended: prometheus.NewCounterVec(counter("operations_ended_total",
			"Operations that came to their end, by state: succeeded, failed, canceled."), []string{labelKind, labelState}),
		failed: prometheus.NewCounterVec(counter("operations_failed_total",
			"Operations that failed, by the reason that their users are told; empty where they are told none."), []string{labelKind, labelReason}),
		lasted: prometheus.NewHistogramVec(histogram("operation_duration_seconds",
			"How long operations took from their acceptance to their end, by state.",
			1, 5, 15, 60, 180, 300, 600, 900, 1800, 3600, 7200, 21600, 86400), []string{labelKind, labelState}),
		claimsFailed: prometheus.NewCounter(counter("claims_failed_total",
			"How often the database could not be asked for work.")),
		leasesLost: prometheus.NewCounter(counter("leases_lost_total",
			"Runs that ended because another replica had taken their operation over.")),
	}

	registerer.MustRegister(made.running, made.pickUp, made.attempts, made.stepTime, made.ended, made.failed, made.lasted,
		made.claimsFailed, made.leasesLost)

	return made
}

// Began implements process.Observer.
func (m *Metrics) Began(kind string) { m.running.WithLabelValues(kind).Inc() }

// PickedUp implements process.Observer.
func (m *Metrics) PickedUp(kind string, delay time.Duration) {
	m.pickUp.WithLabelValues(kind).Observe(delay.Seconds())
}

// Left implements process.Observer.
func (m *Metrics) Left(kind string) { m.running.WithLabelValues(kind).Dec() }

// Attempted implements process.Observer.
func (m *Metrics) Attempted(kind, step string, outcome process.Outcome, took time.Duration) {
	m.attempts.WithLabelValues(kind, step, string(outcome)).Inc()
	m.stepTime.WithLabelValues(kind, step).Observe(took.Seconds())
}

// Ended implements process.Observer.
func (m *Metrics) Ended(record process.Record) {
	state := string(record.State)

	m.ended.WithLabelValues(record.Kind, state).Inc()
	m.lasted.WithLabelValues(record.Kind, state).Observe(record.FinishedAt.Sub(record.CreatedAt).Seconds())

	if record.State == process.Failed {
		m.failed.WithLabelValues(record.Kind, record.Problem.Reason).Inc()
	}
}

// ClaimFailed implements process.Observer.
func (m *Metrics) ClaimFailed() { m.claimsFailed.Inc() }

// LeaseLost implements process.Observer.
func (m *Metrics) LeaseLost() { m.leasesLost.Inc() }
