package orchestration_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/environment-broker/environment-broker/broker/orchestration"
	"github.com/environment-broker/environment-broker/broker/upgrade"
	"github.com/environment-broker/environment-broker/internal/environment"
	"github.com/environment-broker/environment-broker/internal/environment/fleet"
	"github.com/environment-broker/environment-broker/internal/failure"
	"github.com/environment-broker/environment-broker/process"
)

// TestRetryAfterTheDeadline refuses a retry that could start nothing, and keeps the failures.
func TestRetryAfterTheDeadline(t *testing.T) {
	eachDatabase(t, func(f *stepped) {
		f.fill(2)

		parameters := all(9)
		parameters.Strategy.Deadline = began.Add(time.Hour)

		conductor := f.start(environment.KindUpgradeCluster, parameters)
		f.advance(conductor)
		f.endUpgrades(1)
		f.advance(conductor)

		if err := f.finish(conductor); err != nil {
			f.Fatal(err)
		}

		f.pass(2 * time.Hour)

		if _, err := f.Retry(f.Context(), f.id, orchestration.Retry{}); !failure.Is(err, failure.Conflict) {
			f.Errorf("got %v", err)
		}

		if got, _ := f.get(f.id); got.State != environment.OrchestrationFailed {
			f.Errorf("the orchestration is %s", got.State)
		}

		f.wantStats("nothing has changed", map[string]int{"failed": 1, "succeeded": 1})
	})
}

// TestSupersededUpgrades retries an orchestration after single upgrades of its instances: a retry must not install the earlier version.
// Dry runs, canceled upgrades and those that did not start in time supersede nothing.
func TestSupersededUpgrades(t *testing.T) {
	eachDatabase(t, func(f *stepped) {
		for _, id := range []string{"canceled", "described", "late", "superseded", "untouched"} {
			f.kyma(id)
			f.setFailing(id, true)
		}

		parameters := all(9)
		parameters.Kyma = &fleet.Kyma{Version: "2.0.0"}
		f.run(f.start(environment.KindUpgradeKyma, parameters))
		f.wantStats("before", map[string]int{"failed": 5})

		listed, err := f.Conductor.Orchestrations.Pending(f.Context(), f.db.Reader(), f.id)
		if err != nil || len(listed) != 0 {
			f.Fatalf("pending: %v, %v", listed, err)
		}

		f.setFailing("superseded", false)

		for _, order := range []upgrade.Order{
			{InstanceID: "superseded", Kind: environment.KindUpgradeKyma, Version: "3.0.0"},
			{InstanceID: "described", Kind: environment.KindUpgradeKyma, Version: "3.0.0", DryRun: true},
			{InstanceID: "canceled", Kind: environment.KindUpgradeKyma, Version: "3.0.0"},
			{InstanceID: "late", Kind: environment.KindUpgradeKyma, Version: "3.0.0"},
		} {
			accepted, err := f.Conductor.Planner.Upgrader.Upgrade(f.Context(), order)
			if err != nil {
				f.Fatal(err)
			}

			switch order.InstanceID {
			case "canceled":
				f.exec(`UPDATE operations SET state = 'canceled' WHERE id = '` + accepted.OperationID + `'`)
			case "late":
				f.exec(`UPDATE operations SET state = 'failed', problem_reason = '` + failure.ReasonNotStarted + `' WHERE id = '` + accepted.OperationID + `'`)
			}
		}

		f.endKyma()

		retried, err := f.Retry(f.Context(), f.id, orchestration.Retry{})
		if err != nil {
			f.Fatal(err)
		}

		ids := []string{}
		for _, target := range retried.Targets {
			ids = append(ids, target.InstanceID)
		}

		if diff := cmp.Diff([]string{"canceled", "described", "late", "untouched"}, ids); diff != "" || len(retried.Old) != 1 {
			f.Errorf("retried %+v, -want +got\n%s", retried, diff)
		}

		f.wantStats("the superseded upgrade stays failed", map[string]int{"retrying": 4, "failed": 1})

		if again, err := f.Retry(f.Context(), f.id, orchestration.Retry{OperationIDs: retried.Old}); err != nil || len(again.Targets) != 0 || !cmp.Equal(again.Old, retried.Old) {
			f.Errorf("a retry by ID: %+v, %v", again, err)
		}

		f.run(f.claim())

		if got := f.versions("superseded")["superseded"]; got != "3.0.0" {
			f.Errorf("Kyma was downgraded to %s", got)
		}
	})
}

// TestUndoOfUnreadableUpgrades leaves out an instance whose upgrade cannot be decrypted, when the undo is planned and when it starts.
func TestUndoOfUnreadableUpgrades(t *testing.T) {
	eachDatabase(t, func(f *stepped) {
		for _, id := range []string{"early", "late", "readable"} {
			f.kyma(id)
		}

		parameters := all(9)
		parameters.Kyma = &fleet.Kyma{Version: "2.0.0"}
		f.run(f.start(environment.KindUpgradeKyma, parameters))

		seal := func(id string) {
			f.exec(`UPDATE operations SET payload = 'lost:AAAA' WHERE kind = 'upgradeKyma' AND instance_id = '` + id + `'`)
		}
		seal("early")

		undo, err := f.Undo(f.Context(), f.id, false)
		if err != nil {
			f.Fatal(err)
		}

		seal("late")

		f.id = undo
		f.run(f.claim())
		f.wantStats("two cannot be read", map[string]int{"succeeded": 1, "left out": 2})
	})
}

// TestUnstartedSuspension upgrades instances whose suspensions ended before they started, by a cancellation or because they were pending for
// too long: their runtimes have not changed.
func TestUnstartedSuspension(t *testing.T) {
	eachDatabase(t, func(f *stepped) {
		for _, state := range []string{"canceled", "failed"} {
			f.create(state, environment.KindProvision, process.Succeeded, func(*environment.Instance) {})
			f.accept(environment.KindSuspend, environment.Instance{ID: state}, process.Pending)
			f.exec(`UPDATE operations SET state = '` + state + `' WHERE kind = 'suspend' AND instance_id = '` + state + `'`)
		}

		f.advance(f.start(environment.KindUpgradeCluster, all(2)))
		f.wantStats("upgraded", map[string]int{"in progress": 2})
	})
}
