package enginemetrics_test

import (
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/environment-broker/environment-broker/internal/enginemetrics"
	"github.com/environment-broker/environment-broker/process"
)

func TestMetrics(t *testing.T) {
	registry := prometheus.NewPedanticRegistry()
	metrics := enginemetrics.New(registry)

	metrics.Began("provision")
	metrics.PickedUp("provision", 20*time.Millisecond)
	metrics.Began("deprovision")
	metrics.Attempted("provision", "Order", process.Retrying, 2*time.Second)
	metrics.Attempted("provision", "Order", process.Done, 3*time.Second)
	metrics.Left("deprovision")
	metrics.Ended("deprovision", process.Canceled)
	metrics.ClaimFailed()
	metrics.LeaseLost()

	const want = `
# HELP environment_broker_engine_claims_failed_total How often the database could not be asked for work.
# TYPE environment_broker_engine_claims_failed_total counter
environment_broker_engine_claims_failed_total 1
# HELP environment_broker_engine_leases_lost_total Runs that ended because another replica had taken their operation over.
# TYPE environment_broker_engine_leases_lost_total counter
environment_broker_engine_leases_lost_total 1
# HELP environment_broker_engine_operations_ended_total Operations that came to their end, by state: succeeded, failed, canceled.
# TYPE environment_broker_engine_operations_ended_total counter
environment_broker_engine_operations_ended_total{kind="deprovision",state="canceled"} 1
# HELP environment_broker_engine_operations_running Operations that this replica's workers carry at this moment.
# TYPE environment_broker_engine_operations_running gauge
environment_broker_engine_operations_running{kind="deprovision"} 0
environment_broker_engine_operations_running{kind="provision"} 1
# HELP environment_broker_engine_step_attempts_total Runs of steps, by outcome as in the timeline of an operation: done, waiting, retrying, not completed, failed, handed back.
# TYPE environment_broker_engine_step_attempts_total counter
environment_broker_engine_step_attempts_total{kind="provision",outcome="done",step="Order"} 1
environment_broker_engine_step_attempts_total{kind="provision",outcome="retrying",step="Order"} 1
`

	if err := testutil.GatherAndCompare(registry, strings.NewReader(want),
		"environment_broker_engine_claims_failed_total", "environment_broker_engine_leases_lost_total",
		"environment_broker_engine_operations_ended_total", "environment_broker_engine_operations_running",
		"environment_broker_engine_step_attempts_total"); err != nil {
		t.Error(err)
	}

	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}

	sums := map[string]float64{}

	for _, family := range families {
		for _, metric := range family.GetMetric() {
			if histogram := metric.GetHistogram(); histogram != nil {
				sums[family.GetName()] += histogram.GetSampleSum()
			}
		}
	}

	if sums["environment_broker_engine_step_duration_seconds"] != 5 || sums["environment_broker_engine_pickup_delay_seconds"] != 0.02 {
		t.Errorf("durations add up to %v", sums)
	}
}
