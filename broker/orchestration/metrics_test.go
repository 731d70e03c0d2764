package orchestration_test

import (
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/environment-broker/environment-broker/broker/orchestration"
	"github.com/environment-broker/environment-broker/internal/environment"
	"github.com/environment-broker/environment-broker/internal/environment/fleet"
	"github.com/environment-broker/environment-broker/internal/logging"
)

// TestMetrics checks that the metrics count gated and paused orchestrations, but neither plans nor ended ones.
func TestMetrics(t *testing.T) {
	eachDatabase(t, func(f *stepped) {
		f.fill(5)
		f.plan(all(1))

		ended := f.start(environment.KindUpgradeCluster, fleet.Parameters{Targets: fleet.Targets{Include: []fleet.Target{{InstanceID: "none"}}}})
		f.advance(ended)

		if err := f.finish(ended); err != nil {
			f.Fatal(err)
		}

		gated := f.start(environment.KindUpgradeCluster, waves(2, &fleet.FailureGate{Failures: 1}))
		f.advance(gated)
		f.endUpgrades(1)
		f.advance(gated)

		parameters := all(1)
		parameters.Targets.Include = []fleet.Target{{InstanceID: "i00000"}}
		f.start(environment.KindUpgradeCluster, parameters)

		if err := f.Pause(f.Context(), f.id); err != nil {
			f.Fatal(err)
		}

		metrics := orchestration.Metrics{Orchestrations: f.Conductor.Orchestrations, Log: logging.Discard()}
		if err := testutil.CollectAndCompare(metrics, strings.NewReader(`
# HELP environment_broker_orchestration_targets Targets of unfinished orchestrations, by kind of their upgrades and by state. All replicas report the same value.
# TYPE environment_broker_orchestration_targets gauge
environment_broker_orchestration_targets{kind="upgradeCluster",state="failed"} 1
environment_broker_orchestration_targets{kind="upgradeCluster",state="pending"} 4
environment_broker_orchestration_targets{kind="upgradeCluster",state="succeeded"} 1
# HELP environment_broker_orchestrations Unfinished orchestrations, by kind of their upgrades and by state: pending, in progress, retrying, paused, gated, canceling. All replicas report the same value.
# TYPE environment_broker_orchestrations gauge
environment_broker_orchestrations{kind="upgradeCluster",state="gated"} 1
environment_broker_orchestrations{kind="upgradeCluster",state="paused"} 1
`)); err != nil {
			f.Error(err)
		}
	})
}
