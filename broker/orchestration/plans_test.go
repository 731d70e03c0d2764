package orchestration_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/environment-broker/environment-broker/broker/orchestration"
	"github.com/environment-broker/environment-broker/internal/environment"
	"github.com/environment-broker/environment-broker/internal/environment/fleet"
	"github.com/environment-broker/environment-broker/internal/failure"
	"github.com/environment-broker/environment-broker/process"
	"github.com/environment-broker/environment-broker/storage"
)

// plan stores a plan for an upgrade of clusters.
func (f *stepped) plan(parameters fleet.Parameters) {
	f.Helper()

	id, err := f.CreatePlan(f.Context(), environment.KindUpgradeCluster, parameters)
	if err != nil {
		f.Fatal(err)
	}

	f.id = id
}

func (f *stepped) exec(statement string) {
	f.Helper()
	f.tx(func(tx storage.Tx) error {
		_, err := storage.Exec(f.Context(), tx, statement)

		return err
	})
}

// setVersion changes the Kubernetes version of an instance.
func (f *stepped) setVersion(id, version string) {
	f.Helper()

	f.tx(func(tx storage.Tx) error {
		instance, err := f.Conductor.Planner.Upgrader.Instances.Get(f.Context(), tx, id)
		if err != nil {
			return err
		}

		instance.Request.Cluster.KubernetesVersion = version

		return f.Conductor.Planner.Upgrader.Instances.Update(f.Context(), tx, instance)
	})
}

// TestPlanFirst makes a plan, applies it after some of the instances have changed, and runs the orchestration.
func TestPlanFirst(t *testing.T) {
	eachDatabase(t, func(f *stepped) {
		same := func(*environment.Instance) {}
		for _, id := range []string{"deleted", "late", "ready", "suspended", "upgraded"} {
			f.create(id, environment.KindProvision, process.Succeeded, same)
		}

		f.create("own", environment.KindProvision, process.Succeeded, func(instance *environment.Instance) { instance.Provider = "" })
		f.plan(all(5))

		planned, err := f.Conductor.Orchestrations.Pending(f.Context(), f.db.Reader(), f.id)
		if err != nil || len(planned) != 5 || planned[0].FromVersion != "1.34.2" || planned[0].ToVersion != "1.35" {
			f.Fatalf("planned %+v, %v", planned, err)
		}

		if got, _ := f.get(f.id); got.State != environment.OrchestrationPlanned || got.Description != "Planned 5 upgrades; 1 selected instance left out" {
			f.Errorf("got %+v", got)
		}

		if ended, err := f.EndAbandoned(f.Context()); err != nil || len(ended) != 0 {
			f.Errorf("a plan needs no conductor: %v, %v", ended, err)
		}

		if _, err := f.Retry(f.Context(), f.id, orchestration.Retry{}); !failure.Is(err, failure.Conflict) {
			f.Errorf("a retry of a plan: %v", err)
		}

		f.exec(`DELETE FROM instances WHERE id = 'deleted'`)
		f.exec(`UPDATE instances SET suspended = TRUE WHERE id = 'suspended'`)
		f.setVersion("upgraded", "1.36.0")
		f.create("created later", environment.KindProvision, process.Succeeded, same)

		_, err = f.Apply(f.Context(), f.id, true)
		if text := failure.Of(err).Text; !failure.Is(err, failure.Conflict) || !strings.Contains(text, "3 instances changed") ||
			!strings.Contains(text, "upgraded (The upgrade was planned from version 1.34.2 to 1.35, and would now be from version 1.36.0 to 1.36.0)") {
			f.Errorf("strict: %v", err)
		}

		f.wantStats("nothing was started", map[string]int{"pending": 5, "left out": 1})

		changed, err := f.Apply(f.Context(), f.id, false)
		if diff := cmp.Diff([]orchestration.Changed{
			{InstanceID: "deleted", Why: "The instance was deleted, or the order no longer selects it."},
			{InstanceID: "suspended", Why: "The instance is suspended and has no runtime."},
			{InstanceID: "upgraded", Why: "The upgrade was planned from version 1.34.2 to 1.35, and would now be from version 1.36.0 to 1.36.0."},
		}, changed); diff != "" || err != nil {
			f.Errorf("%v, -want +got\n%s", err, diff)
		}

		if _, err := f.Apply(f.Context(), f.id, false); !failure.Is(err, failure.Conflict) {
			f.Errorf("a plan that was applied: %v", err)
		}

		f.setVersion("late", "1.34.9")

		conductor := f.claim()
		if err := f.Plan(f.Context(), conductor); err != nil {
			f.Fatal(err)
		}

		f.advance(conductor)

		got := f.targets()
		if diff := cmp.Diff(map[string]string{
			"deleted":   "left out: Changed since the plan was made: The instance was deleted, or the order no longer selects it.",
			"late":      "left out: The upgrade was planned from version 1.34.2 to 1.35, and would now be from version 1.34.9 to 1.35.",
			"own":       "left out: The cluster belongs to the tenant, who also upgrades it.",
			"ready":     got["ready"],
			"suspended": "left out: Changed since the plan was made: The instance is suspended and has no runtime.",
			"upgraded":  "left out: Changed since the plan was made: The upgrade was planned from version 1.34.2 to 1.35, and would now be from version 1.36.0 to 1.36.0.",
		}, got); diff != "" || !strings.HasPrefix(got["ready"], "in progress") {
			f.Errorf("-want +got\n%s", diff)
		}
	})
}

// TestPlansEnd discards a plan, and lets another one expire.
func TestPlansEnd(t *testing.T) {
	eachDatabase(t, func(f *stepped) {
		f.fill(2)
		f.plan(all(1))
		discarded := f.id

		if err := f.Cancel(f.Context(), discarded); err != nil {
			f.Fatal(err)
		}

		f.wantStats("discarded", map[string]int{"canceled": 2})

		f.plan(all(1))
		f.clock.SetTime(began.Add(environment.PlanLifetime - time.Second))

		if err := f.ExpirePlans(f.Context()); err != nil {
			f.Fatal(err)
		}

		f.wantStats("not yet", map[string]int{"pending": 2})
		f.clock.SetTime(began.Add(environment.PlanLifetime))

		if _, err := f.Apply(f.Context(), f.id, false); !failure.Is(err, failure.Conflict) || !strings.Contains(err.Error(), "expired") {
			f.Errorf("an old plan: %v", err)
		}

		if err := f.ExpirePlans(f.Context()); err != nil {
			f.Fatal(err)
		}

		f.wantStats("expired", nil)

		for id, want := range map[string]environment.OrchestrationState{discarded: environment.OrchestrationCanceled, f.id: environment.OrchestrationExpired} {
			if got, _ := f.get(id); got.State != want {
				f.Errorf("got %+v, want %s", got, want)
			}

			if _, err := f.Apply(f.Context(), id, false); !failure.Is(err, failure.Conflict) {
				f.Errorf("a plan that is %s: %v", want, err)
			}
		}

		if _, err := f.Retry(f.Context(), f.id, orchestration.Retry{}); !failure.Is(err, failure.Conflict) || !strings.Contains(err.Error(), "expired") {
			f.Errorf("a retry of an expired plan: %v", err)
		}

		for name, ids := range map[string][]string{"all upgrades": nil, "an unknown upgrade": {"other"}} {
			if _, err := f.Retry(f.Context(), discarded, orchestration.Retry{OperationIDs: ids}); !failure.Is(err, failure.Conflict) ||
				!strings.Contains(err.Error(), "was canceled, and none of its upgrades has failed") {
				f.Errorf("a retry of %s of a discarded plan: %v", name, err)
			}
		}

		if _, err := f.Apply(f.Context(), "other", false); !failure.Is(err, failure.NotFound) {
			f.Errorf("an unknown plan: %v", err)
		}

		f.id, _ = f.order(all(1))

		if _, err := f.Apply(f.Context(), f.id, false); !failure.Is(err, failure.Conflict) || !strings.Contains(err.Error(), "not a plan") {
			f.Errorf("an orchestration without a plan: %v", err)
		}

		if _, err := f.CreatePlan(f.Context(), environment.KindUpgradeCluster, fleet.Parameters{}); !failure.Is(err, failure.Invalid) {
			f.Errorf("an invalid order: %v", err)
		}
	})
}

// TestManyChanges names the first of many changed instances.
func TestManyChanges(t *testing.T) {
	eachDatabase(t, func(f *stepped) {
		f.fill(12)
		f.plan(all(1))

		for i := range 12 {
			f.setVersion(fmt.Sprintf("i%05d", i), "1.34.9")
		}

		if _, err := f.Apply(f.Context(), f.id, true); !strings.Contains(fmt.Sprint(err), "i00009") || !strings.Contains(fmt.Sprint(err), ", and 2 more.") {
			f.Errorf("got %v", err)
		}
	})
}
