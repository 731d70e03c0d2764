package telemetry

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/environment-broker/environment-broker/process"
)

// namespace is the prefix of all metric names in this package. It must not change, because operators' dashboards and alert rules
// depend on these names.
const namespace = "environment_broker_engine"

const (
	labelKind    = "kind"
	labelStep    = "step"
	labelOutcome = "outcome"
	labelState   = "state"
	labelReason  = "reason"
)

// Metrics counts and times the work of an engine. It implements process.Observer and is safe for concurrent use.
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

// New creates and registers the metrics of an engine. It panics if they are already registered: a process has only one engine.
func New(registerer prometheus.Registerer) *Metrics {
	counter := func(name, help string) prometheus.CounterOpts {
		return prometheus.CounterOpts{Namespace: namespace, Name: name, Help: help}
	}
	histogram := func(name, help string, buckets ...float64) prometheus.HistogramOpts {
		return prometheus.HistogramOpts{Namespace: namespace, Name: name, Help: help, Buckets: buckets}
	}

	made := &Metrics{
		running: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Namespace: namespace, Name: "operations_running", Help: "Operations that the workers of this replica are running, by kind.",
		}, []string{labelKind}),
		pickUp: prometheus.NewHistogramVec(histogram("pickup_delay_seconds",
			"Time between an operation becoming due and a worker claiming it, by kind. A queued operation is due as soon as it is accepted.",
			.001, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 60, 600), []string{labelKind}),
		attempts: prometheus.NewCounterVec(counter("step_attempts_total",
			"Step attempts, by kind of operation, step, and outcome as shown in the timeline: done, waiting, retrying, not completed, failed, handed back."),
			[]string{labelKind, labelStep, labelOutcome}),
		stepTime: prometheus.NewHistogramVec(histogram("step_duration_seconds",
			"Duration of step attempts, by kind of operation and step.", .001, .005, .025, .1, .5, 1, 5, 10, 30, 60, 120), []string{labelKind, labelStep}),
		ended: prometheus.NewCounterVec(counter("operations_ended_total",
			"Operations that ended, by kind and state: succeeded, failed, canceled."), []string{labelKind, labelState}),
		failed: prometheus.NewCounterVec(counter("operations_failed_total",
			"Failed operations, by kind and the reason shown to users. The reason label is empty if there is no reason."), []string{labelKind, labelReason}),
		lasted: prometheus.NewHistogramVec(histogram("operation_duration_seconds",
			"Time from the acceptance to the end of operations, by kind and final state.",
			1, 5, 15, 60, 180, 300, 600, 900, 1800, 3600, 7200, 21600, 86400), []string{labelKind, labelState}),
		claimsFailed: prometheus.NewCounter(counter("claims_failed_total",
			"Failed attempts to find or claim due operations.")),
		leasesLost: prometheus.NewCounter(counter("leases_lost_total",
			"Runs that ended early because another replica had claimed the operation.")),
	}

	registerer.MustRegister(made.running, made.pickUp, made.attempts, made.stepTime, made.ended, made.failed, made.lasted,
		made.claimsFailed, made.leasesLost)

	return made
}

// RunBegan implements process.Observer.
func (m *Metrics) RunBegan(kind string) { m.running.WithLabelValues(kind).Inc() }

// PickedUp implements process.Observer.
func (m *Metrics) PickedUp(kind string, delay time.Duration) {
	m.pickUp.WithLabelValues(kind).Observe(delay.Seconds())
}

// RunEnded implements process.Observer.
func (m *Metrics) RunEnded(kind string) { m.running.WithLabelValues(kind).Dec() }

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
