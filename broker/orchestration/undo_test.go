package orchestration_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/environment-broker/environment-broker/internal/environment"
	"github.com/environment-broker/environment-broker/internal/environment/fleet"
	"github.com/environment-broker/environment-broker/internal/failure"
	"github.com/environment-broker/environment-broker/process"
	"github.com/environment-broker/environment-broker/storage"
	"github.com/environment-broker/environment-broker/storage/storagetest"
)

// kyma creates an instance with Kyma.
func (f *stepped) kyma(id string) {
	f.Helper()
	f.create(id, environment.KindProvision, process.Succeeded, func(instance *environment.Instance) {
		instance.PlanID, instance.PlanName = planPreview, "preview"
		instance.Request.Cluster.Kyma = &environment.Kyma{Version: "1.0.0", Modules: []string{"eventing"}}
	})
}

// endKyma ends all unfinished upgrades of Kyma. The upgrades of the instances in failing fail. The others set the version, as the
// real process does.
func (f *stepped) endKyma() {
	f.Helper()

	now, rows := f.clock.Now(), f.Conductor.Planner.Upgrader.Instances

	for _, work := range storagetest.Claim(f, f.operations,
		process.Claim{Owner: "test", Limit: 100, Now: now, Until: now.Add(time.Minute)}, environment.KindUpgradeKyma) {
		progress := process.Progress{Record: work.Record, Release: true, Now: now}
		progress.Record.NextRun, progress.Record.State, progress.Record.FinishedAt, progress.Record.StartedAt = now, process.Failed, now, now

		var data environment.Data
		if err := data.UnmarshalJSON(work.Record.Payload); err != nil {
			f.Fatal(err)
		}

		instance, err := rows.Get(f.Context(), f.db.Reader(), work.Record.InstanceID)
		if err != nil {
			f.Fatal(err)
		}

		data.Instance = instance

		if !f.fails(instance.ID) {
			progress.Record.State = process.Succeeded
			changed := *instance.Request.Cluster.Kyma
			changed.Version = data.Upgrade.Version
			instance.Request.Cluster.Kyma = &changed
			f.tx(func(tx storage.Tx) error { return rows.Update(f.Context(), tx, instance) })
		}

		if progress.Record.Payload, err = data.MarshalJSON(); err != nil {
			f.Fatal(err)
		}

		if _, err := f.operations.Save(f.Context(), progress); err != nil {
			f.Fatal(err)
		}
	}
}

// run conducts the orchestration to its end.
func (f *stepped) run(conductor process.Record) {
	f.Helper()

	for range 20 {
		f.clock.SetTime(f.clock.Now().Add(time.Second))

		if f.advance(conductor).Done {
			if err := f.finish(conductor); err != nil {
				f.Fatal(err)
			}

			return
		}

		f.endKyma()
	}

	f.Fatalf("the orchestration does not end: %v", f.targets())
}

// versions returns the Kyma versions in the rows.
func (f *stepped) versions(ids ...string) map[string]string {
	f.Helper()

	versions := map[string]string{}

	for _, id := range ids {
		instance, err := f.Conductor.Planner.Upgrader.Instances.Get(f.Context(), f.db.Reader(), id)
		if err != nil {
			f.Fatal(err)
		}

		versions[id] = instance.Request.Cluster.Kyma.Version
	}

	return versions
}

// TestUndo upgrades three instances and undoes the orchestration. One of the upgrades fails. The undo has the limits of the orchestration.
func TestUndo(t *testing.T) {
	eachDatabase(t, func(f *stepped) {
		for _, id := range []string{"a", "b", "failing"} {
			f.kyma(id)
		}

		f.setFailing("failing", true)

		parameters := all(1)
		parameters.Kyma = &fleet.Kyma{Version: "2.0.0"}

		conductor := f.start(environment.KindUpgradeKyma, parameters)
		upgraded := f.id

		if _, err := f.Undo(f.Context(), upgraded, false); !failure.Is(err, failure.Conflict) || !strings.Contains(failure.Of(err).Text, "wait for its end") {
			t.Errorf("an orchestration that runs: %v", err)
		}

		f.run(conductor)
		f.wantStats("upgraded", map[string]int{"succeeded": 2, "failed": 1})

		first, err := f.Undo(f.Context(), upgraded, false)
		if err != nil {
			t.Fatal(err)
		}

		if again, err := f.Undo(f.Context(), upgraded, false); err != nil || again != first {
			t.Errorf("a repeated undo is %s, %v, want %s", again, err, first)
		}

		f.id = first
		conductor = f.claim()

		if err := f.Plan(f.Context(), conductor); err != nil {
			t.Fatal(err)
		}

		f.advance(conductor)
		f.wantStats("the limit of the orchestration", map[string]int{"in progress": 1, "pending": 1, "left out": 1})
		f.endKyma()
		f.run(conductor)
		f.wantStats("rolled back", map[string]int{"succeeded": 2, "left out": 1})

		if diff := cmp.Diff(map[string]string{"a": "1.0.0", "b": "1.0.0"}, f.versions("a", "b")); diff != "" {
			t.Errorf("-want +got\n%s", diff)
		}

		if got := f.targets()["failing"]; !strings.HasPrefix(got, "left out: The upgrade has failed") {
			t.Errorf("got %s", got)
		}

		for reason, id := range map[string]string{"nothing is left": upgraded, "an undo": first} {
			if _, err := f.Undo(f.Context(), id, false); !failure.Is(err, failure.Conflict) {
				t.Errorf("%s: %v", reason, err)
			}
		}
	})
}

// TestUndoPlan plans an undo, upgrades an instance again, and applies the plan.
func TestUndoPlan(t *testing.T) {
	eachDatabase(t, func(f *stepped) {
		f.kyma("a")
		f.kyma("b")

		parameters := all(5)
		parameters.Kyma = &fleet.Kyma{Version: "2.0.0"}
		f.run(f.start(environment.KindUpgradeKyma, parameters))

		upgraded := f.id

		plan, err := f.Undo(f.Context(), upgraded, true)
		if err != nil {
			t.Fatal(err)
		}

		planned, err := f.Conductor.Orchestrations.Pending(f.Context(), f.db.Reader(), plan)
		if err != nil || len(planned) != 2 || planned[0].FromVersion != "2.0.0" || planned[0].ToVersion != "1.0.0" {
			t.Errorf("planned %+v, %v", planned, err)
		}

		parameters.Targets.Include[0].Target, parameters.Targets.Include[0].InstanceID = "", "b"
		parameters.Kyma = &fleet.Kyma{Version: "3.0.0"}
		f.run(f.start(environment.KindUpgradeKyma, parameters))

		changed, err := f.Apply(f.Context(), plan, false)
		if err != nil || len(changed) != 1 || changed[0].InstanceID != "b" || !strings.Contains(changed[0].Why, "has since been upgraded again") {
			t.Errorf("applied without %+v, %v", changed, err)
		}

		f.id = plan
		f.run(f.claim())

		if diff := cmp.Diff(map[string]string{"a": "1.0.0", "b": "3.0.0"}, f.versions("a", "b")); diff != "" {
			t.Errorf("-want +got\n%s", diff)
		}
	})
}

// TestUndoAfterAFailureOfTheConductor undoes an orchestration whose conductor failed before its upgrade ended.
func TestUndoAfterAFailureOfTheConductor(t *testing.T) {
	eachDatabase(t, func(f *stepped) {
		f.kyma("a")

		parameters := all(1)
		parameters.Kyma = &fleet.Kyma{Version: "2.0.0"}
		conductor := f.start(environment.KindUpgradeKyma, parameters)

		f.advance(conductor)
		f.fail(conductor)
		f.endAbandoned(f.id)
		f.endKyma()

		undo, err := f.Undo(f.Context(), f.id, false)
		if err != nil {
			t.Fatal(err)
		}

		f.id = undo
		f.run(f.claim())
		f.wantStats("rolled back", map[string]int{"succeeded": 1})
	})
}

// TestUndoIsRefused tries to undo orchestrations without an upgrade that can be rolled back.
func TestUndoIsRefused(t *testing.T) {
	eachDatabase(t, func(f *stepped) {
		f.kyma("a")

		dryRun := all(1)
		dryRun.DryRun = true

		plan, err := f.CreatePlan(t.Context(), environment.KindUpgradeKyma, all(1))
		if err != nil {
			t.Fatal(err)
		}

		add := func(kind string, change func(*environment.Orchestration)) string {
			id := kind + f.clock.Now().String()
			orchestration := environment.Orchestration{
				ID: id, Kind: kind, State: environment.OrchestrationSucceeded, Parameters: all(1), CreatedAt: began, UpdatedAt: began,
			}
			change(&orchestration)
			f.clock.SetTime(f.clock.Now().Add(time.Second))
			f.tx(func(tx storage.Tx) error { return f.Conductor.Orchestrations.Insert(t.Context(), tx, orchestration) })

			return id
		}

		for _, c := range []struct {
			reason, id string
			kind       failure.Kind
			text       string
		}{
			{"unknown", "x", failure.NotFound, "does not exist"},
			{"a cluster", add(environment.KindUpgradeCluster, func(*environment.Orchestration) {}), failure.Conflict, "Kubernetes versions cannot be lowered"},
			{"a dry run", add(environment.KindUpgradeKyma, func(o *environment.Orchestration) { o.Parameters = dryRun }), failure.Conflict, "was a dry run"},
			{"a plan", plan, failure.Conflict, "was not applied"},
			{"nothing", add(environment.KindUpgradeKyma, func(*environment.Orchestration) {}), failure.Conflict, "None of the instances that the orchestration upgraded"},
		} {
			if _, err := f.Undo(t.Context(), c.id, false); !failure.Is(err, c.kind) || !strings.Contains(failure.Of(err).Text, c.text) {
				t.Errorf("%s: %v", c.reason, err)
			}
		}
	})
}
