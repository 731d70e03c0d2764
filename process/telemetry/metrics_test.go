package telemetry_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	logtest "github.com/sirupsen/logrus/hooks/test"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/environment-broker/environment-broker/internal/logging"
	"github.com/environment-broker/environment-broker/process"
	"github.com/environment-broker/environment-broker/process/telemetry"
	"github.com/environment-broker/environment-broker/storage"
	"github.com/environment-broker/environment-broker/storage/operations"
)

var began = time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC)

func TestMetrics(t *testing.T) {
	registry := prometheus.NewPedanticRegistry()
	metrics := telemetry.New(registry)

	metrics.RunBegan("provision")
	metrics.PickedUp("provision", 20*time.Millisecond)
	metrics.RunBegan("deprovision")
	metrics.Attempted("provision", "Order", process.Retrying, 2*time.Second)
	metrics.Attempted("provision", "Order", process.Done, 3*time.Second)
	metrics.RunEnded("deprovision")
	metrics.Ended(process.Record{Kind: "deprovision", State: process.Canceled})
	metrics.Ended(process.Record{
		Kind: "provision", State: process.Failed, Problem: process.Problem{Reason: "ERR_INFRA_QUOTA_EXCEEDED"},
		CreatedAt: began, FinishedAt: began.Add(time.Minute),
	})
	metrics.ClaimFailed()
	metrics.LeaseLost()

	const want = `
# HELP environment_broker_engine_claims_failed_total Failed attempts to find or claim due operations.
# TYPE environment_broker_engine_claims_failed_total counter
environment_broker_engine_claims_failed_total 1
# HELP environment_broker_engine_leases_lost_total Runs that ended early because another replica had claimed the operation.
# TYPE environment_broker_engine_leases_lost_total counter
environment_broker_engine_leases_lost_total 1
# HELP environment_broker_engine_operations_ended_total Operations that ended, by kind and state: succeeded, failed, canceled.
# TYPE environment_broker_engine_operations_ended_total counter
environment_broker_engine_operations_ended_total{kind="deprovision",state="canceled"} 1
environment_broker_engine_operations_ended_total{kind="provision",state="failed"} 1
# HELP environment_broker_engine_operations_failed_total Failed operations, by kind and the reason shown to users. The reason label is empty if there is no reason.
# TYPE environment_broker_engine_operations_failed_total counter
environment_broker_engine_operations_failed_total{kind="provision",reason="ERR_INFRA_QUOTA_EXCEEDED"} 1
# HELP environment_broker_engine_operations_running Operations that the workers of this replica are running, by kind.
# TYPE environment_broker_engine_operations_running gauge
environment_broker_engine_operations_running{kind="deprovision"} 0
environment_broker_engine_operations_running{kind="provision"} 1
# HELP environment_broker_engine_step_attempts_total Step attempts, by kind of operation, step, and outcome as shown in the timeline: done, waiting, retrying, not completed, failed, handed back.
# TYPE environment_broker_engine_step_attempts_total counter
environment_broker_engine_step_attempts_total{kind="provision",outcome="done",step="Order"} 1
environment_broker_engine_step_attempts_total{kind="provision",outcome="retrying",step="Order"} 1
`

	if err := testutil.GatherAndCompare(registry, strings.NewReader(want),
		"environment_broker_engine_claims_failed_total", "environment_broker_engine_leases_lost_total",
		"environment_broker_engine_operations_ended_total", "environment_broker_engine_operations_running", "environment_broker_engine_operations_failed_total",
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

	if sums["environment_broker_engine_operation_duration_seconds"] != 60 || sums["environment_broker_engine_step_duration_seconds"] != 5 || sums["environment_broker_engine_pickup_delay_seconds"] != 0.02 {
		t.Errorf("sums of durations are %v", sums)
	}
}

// depths is a store that returns fixed counts or a fixed error.
type depths struct {
	found []operations.QueueDepth
	err   error
}

// QueueDepths implements telemetry.QueueDepths.
func (s depths) QueueDepths(context.Context, time.Time) ([]operations.QueueDepth, error) {
	return s.found, s.err
}

func TestQueue(t *testing.T) {
	const want = `
# HELP environment_broker_engine_leases Leases of operations in the database, by kind and state: held, expired (the replica has stopped; another one takes the operation over within seconds). All replicas report the same value.
# TYPE environment_broker_engine_leases gauge
environment_broker_engine_leases{kind="provision",state="expired"} 1
environment_broker_engine_leases{kind="provision",state="held"} 4
# HELP environment_broker_engine_operations_oldest_seconds Age of the oldest unfinished operation, by kind and state. All replicas report the same value.
# TYPE environment_broker_engine_operations_oldest_seconds gauge
environment_broker_engine_operations_oldest_seconds{kind="provision",state="canceling"} 90
environment_broker_engine_operations_oldest_seconds{kind="provision",state="in progress"} 90
environment_broker_engine_operations_oldest_seconds{kind="provision",state="pending"} 90
# HELP environment_broker_engine_operations_unfinished Unfinished operations in the database, by kind and state: pending, in progress, canceling. All replicas report the same value.
# TYPE environment_broker_engine_operations_unfinished gauge
environment_broker_engine_operations_unfinished{kind="provision",state="canceling"} 1
environment_broker_engine_operations_unfinished{kind="provision",state="in progress"} 7
environment_broker_engine_operations_unfinished{kind="provision",state="pending"} 3
`

	now := clocktesting.NewFakePassiveClock(began.Add(90 * time.Second))
	filled := depths{found: []operations.QueueDepth{
		{Kind: "provision", State: process.Pending, Count: 3, Oldest: storage.At(began)},
		{Kind: "provision", State: process.InProgress, Count: 7, Oldest: storage.At(began), Leased: 4, Expired: 1},
		{Kind: "provision", State: process.Canceling, Count: 1, Oldest: storage.At(began), Leased: 1},
	}}

	if err := testutil.CollectAndCompare(telemetry.Queue(filled, now, logging.Discard()), strings.NewReader(want)); err != nil {
		t.Error(err)
	}

	log, lines := logtest.NewNullLogger()
	if count := testutil.CollectAndCount(telemetry.Queue(depths{err: errors.New("the database is down")}, now, log)); count != 0 {
		t.Errorf("%d metrics without the database, want none", count)
	}

	if len(lines.AllEntries()) != 1 {
		t.Errorf("want a log line with the error, got %v", lines.AllEntries())
	}
}
