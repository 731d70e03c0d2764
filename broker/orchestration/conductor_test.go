package orchestration_test

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/environment-broker/environment-broker/broker/orchestration"
	"github.com/environment-broker/environment-broker/internal/environment"
	"github.com/environment-broker/environment-broker/internal/environment/fleet"
	"github.com/environment-broker/environment-broker/internal/failure"
	"github.com/environment-broker/environment-broker/process"
	"github.com/environment-broker/environment-broker/process/orchestrating"
	"github.com/environment-broker/environment-broker/storage"
	"github.com/environment-broker/environment-broker/storage/orchestrations"
	"github.com/environment-broker/environment-broker/storage/storagetest"
)

var began = time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC)

// stepped is a fixture without an engine: the test calls the conductor.
type stepped struct {
	*fixture

	clock *clocktesting.FakePassiveClock
	id    string
}

func eachDatabase(t *testing.T, test func(f *stepped)) {
	t.Helper()

	storagetest.EachDatabase(t, func(t *testing.T, db *storage.DB) {
		clock := clocktesting.NewFakePassiveClock(began)
		test(&stepped{fixture: newFixture(t, db, clock), clock: clock})
	})
}

// claim claims the unfinished conductor.
func (f *stepped) claim() process.Record {
	f.Helper()

	now := f.clock.Now()

	claimed := storagetest.Claim(f, f.operations, process.Claim{Owner: "replica", Limit: 1, Now: now, Until: now.Add(time.Minute)}, environment.KindOrchestrate)
	if len(claimed) != 1 {
		f.Fatalf("claimed %+v", claimed)
	}

	return claimed[0].Record
}

// start orders and plans an orchestration and returns its conductor.
func (f *stepped) start(kind string, parameters fleet.Parameters) process.Record {
	f.Helper()

	id, err := f.Create(f.Context(), kind, parameters)
	if err != nil {
		f.Fatal(err)
	}

	f.id = id
	conductor := f.claim()

	for range 2 { // the second plan does nothing
		if err := f.Plan(f.Context(), conductor); err != nil {
			f.Fatal(err)
		}
	}

	return conductor
}

func (f *stepped) advance(conductor process.Record) orchestrating.Progress {
	f.Helper()

	progress, err := f.Advance(f.Context(), conductor)
	if err != nil {
		f.Fatal(err)
	}

	return progress
}

// finish stores the success of the conductor, with the effect that ends the orchestration.
func (f *stepped) finish(conductor process.Record) error {
	conductor.State, conductor.FinishedAt = process.Succeeded, f.clock.Now()
	_, err := f.operations.Save(f.Context(), process.Progress{Record: conductor, Release: true, Now: f.clock.Now(), Effect: f.End(conductor)})

	return err
}

// end ends all unfinished upgrades with the given state.
func (f *stepped) end(state process.State) {
	f.Helper()
	f.accept(environment.KindUpgradeCluster, environment.Instance{ID: "another " + string(state) + fmt.Sprint(f.clock.Now())}, state)
}

func (f *stepped) wantStats(reason string, want map[string]int) {
	f.Helper()

	if _, stats := f.get(f.id); !cmp.Equal(want, stats, cmpopts.EquateEmpty()) {
		f.Errorf("%s: -want +got\n%s", reason, cmp.Diff(want, stats))
	}
}

// targets lists the states and descriptions of all targets by instance.
func (f *stepped) targets() map[string]string {
	f.Helper()

	found := map[string]string{}

	for _, states := range [][]string{nil, {"left out"}} {
		listed, _, err := f.Conductor.Orchestrations.ListTargets(f.Context(), f.id, orchestrations.Filter{States: states, Limit: 100})
		if err != nil {
			f.Fatal(err)
		}

		for _, each := range listed {
			found[each.InstanceID] = each.State + ": " + each.Description
		}
	}

	return found
}

func TestPlan(t *testing.T) {
	eachDatabase(t, func(f *stepped) {
		same := func(*environment.Instance) {}
		preview := func(instance *environment.Instance) {
			instance.PlanID, instance.PlanName = planPreview, "preview"
			instance.Request.Cluster.Kyma = &environment.Kyma{Version: "1.0.0"}
		}

		f.create("ready", environment.KindProvision, process.Succeeded, preview)
		f.create("updated", environment.KindUpdate, process.Failed, preview)
		f.create("without Kyma", environment.KindProvision, process.Succeeded, func(instance *environment.Instance) {
			instance.PlanID, instance.PlanName = planPreview, "preview"
		})
		f.create("changed in SQL", environment.KindProvision, process.Succeeded, preview)
		f.tx(func(tx storage.Tx) error {
			_, err := storage.Exec(f.Context(), tx, `UPDATE instances SET shoot_name = 'another' WHERE id = 'changed in SQL'`)

			return err
		})
		f.create("no Kyma", environment.KindProvision, process.Succeeded, same)
		f.create("own", environment.KindProvision, process.Succeeded, func(instance *environment.Instance) { instance.Provider = "" })
		f.create("resumption failed", environment.KindResume, process.Failed, same)
		f.create("suspended", environment.KindUpdate, process.Succeeded, same)
		f.tx(func(tx storage.Tx) error {
			_, err := storage.Exec(f.Context(), tx, `UPDATE instances SET suspended = TRUE WHERE id = 'suspended'`)

			return err
		})
		f.create("deleting", environment.KindDeprovision, process.Pending, same)
		f.create("no runtime", environment.KindUpdate, process.Succeeded, func(instance *environment.Instance) { instance.RuntimeID = "" })
		f.create("old plan", environment.KindProvision, process.Succeeded, func(instance *environment.Instance) { instance.PlanID, instance.PlanName = "x", "old" })
		f.create("excluded", environment.KindProvision, process.Succeeded, same)
		f.create("creating", environment.KindProvision, process.Pending, same)

		parameters := all(1)
		parameters.Targets.Exclude = []fleet.Target{{InstanceID: "excluded"}}
		f.start(environment.KindUpgradeKyma, parameters)

		if diff := cmp.Diff(map[string]string{
			"ready": "pending: ", "updated": "pending: ",
			"without Kyma":      "left out: The instance was created without Kyma. Only new instances of plan preview have Kyma.",
			"changed in SQL":    "left out: The instance cannot be read. Its database record was changed outside the broker, or its encryption key is missing.",
			"no Kyma":           "left out: Plan aws does not install Kyma.",
			"own":               "left out: The cluster belongs to the tenant, who also upgrades it.",
			"creating":          "left out: The runtime is not complete.",
			"resumption failed": "left out: The runtime is not complete.",
			"no runtime":        "left out: The runtime is not complete.",
			"suspended":         "left out: The instance is suspended and has no runtime.",
			"deleting":          "left out: The runtime is being removed or was removed.",
			"old plan":          "left out: The catalog no longer has plan old.",
		}, f.targets()); diff != "" {
			f.Errorf("-want +got\n%s", diff)
		}

		if got, _ := f.get(f.id); got.State != environment.OrchestrationInProgress || got.Description != "Scheduled 2 operations" {
			f.Errorf("got %+v", got)
		}
	})
}

// TestSelectors selects targets by each of the fields that Kyma Environment Broker lacks.
func TestSelectors(t *testing.T) {
	eachDatabase(t, func(f *stepped) {
		f.create("canary", environment.KindProvision, process.Succeeded, func(instance *environment.Instance) {
			instance.Request.Cluster.Kyma = &environment.Kyma{Version: "2.0.4"}
		})
		f.create("old", environment.KindUpdate, process.Failed, func(instance *environment.Instance) {
			instance.Request.Cluster.KubernetesVersion = "1.33.1"
			instance.GlobalAccountID, instance.SubAccountID = "ga-old", "sa-old"
		})
		f.create("changed in SQL", environment.KindProvision, process.Succeeded, func(*environment.Instance) {})
		f.tx(func(tx storage.Tx) error {
			_, err := storage.Exec(f.Context(), tx, `UPDATE instances SET shoot_name = 'another' WHERE id = 'changed in SQL'`)

			return errors.Join(err, f.Conductor.Planner.Upgrader.Instances.SetLabels(f.Context(), tx, "canary", map[string]string{"ring": "canary"}))
		})

		for name, c := range map[string]struct {
			reason string
			target fleet.Target
			want   string
		}{
			"state":      {"the state of the runtime", fleet.Target{State: "failed"}, "old"},
			"label":      {"a label", fleet.Target{Labels: "ring=canary"}, "canary"},
			"version":    {"an unreadable instance has no version", fleet.Target{KubernetesVersion: "1.34"}, "canary"},
			"Kyma":       {"the Kyma version", fleet.Target{KymaVersion: "2.0"}, "canary"},
			"account":    {"the global account", fleet.Target{GlobalAccount: "^ga-"}, "old"},
			"subaccount": {"the subaccount", fleet.Target{SubAccount: "^sa-"}, "old"},
			"runtime":    {"the ID of the runtime", fleet.Target{RuntimeID: "runtime-old"}, "old"},
			"shoot":      {"the name of the Shoot", fleet.Target{Shoot: "c-canary"}, "canary"},
			"percentage": {"all of them", fleet.Target{Percentage: 100, PlanName: "aws"}, "canary changed in SQL old"},
		} {
			parameters := all(1)
			parameters.Targets.Include = []fleet.Target{c.target}
			f.start(environment.KindUpgradeCluster, parameters)

			if got := strings.Join(slices.Sorted(maps.Keys(f.targets())), " "); got != c.want {
				f.Errorf("%s: %s: selected %q, want %q", name, c.reason, got, c.want)
			}
		}
	})
}

func TestNoTargets(t *testing.T) {
	eachDatabase(t, func(f *stepped) {
		conductor := f.start(environment.KindUpgradeCluster, all(1))

		if progress := f.advance(conductor); !progress.Done {
			f.Errorf("got %+v", progress)
		}

		if err := f.finish(conductor); err != nil {
			f.Error(err)
		}

		if got, _ := f.get(f.id); got.State != environment.OrchestrationSucceeded || got.Description != "No instance was selected" {
			f.Errorf("got %+v", got)
		}
	})
}

// TestChangedSincePlanned starts upgrades of instances that have changed since they were planned.
func TestChangedSincePlanned(t *testing.T) {
	eachDatabase(t, func(f *stepped) {
		same := func(*environment.Instance) {}
		for _, id := range []string{"busy", "changed", "gone", "suspended", "ready"} {
			f.create(id, environment.KindProvision, process.Succeeded, same)
		}

		conductor := f.start(environment.KindUpgradeCluster, all(9))
		f.exec(`UPDATE instances SET shoot_name = 'other' WHERE id = 'changed'`)

		f.accept(environment.KindUpdate, environment.Instance{ID: "busy"}, process.Pending)
		f.accept(environment.KindSuspend, environment.Instance{ID: "suspended"}, process.Succeeded)
		f.tx(func(tx storage.Tx) error {
			_, err := storage.Exec(f.Context(), tx, `DELETE FROM instances WHERE id = 'gone'`)

			return err
		})

		progress := f.advance(conductor)
		targets := f.targets()

		for id, want := range map[string]string{
			"ready":     "in progress: Operation created",
			"changed":   "left out: The instance cannot be read. Its database record was changed outside the broker, or its encryption key is missing.",
			"gone":      "canceled: The instance no longer exists.",
			"suspended": "canceled: The instance is suspended and has no runtime to upgrade. Resume the instance first.",
		} {
			if targets[id] != want {
				f.Errorf("%s: got %q, want %q", id, targets[id], want)
			}
		}

		if state, _, _ := cutState(targets["busy"]); state != "pending" || progress.Done {
			f.Errorf("the tenant's order goes first: %q, %+v", targets["busy"], progress)
		}

		if f.clock.SetTime(began.Add(59 * time.Second)); !progress.Next.Equal(began.Add(time.Minute)) && !progress.Next.IsZero() {
			f.Errorf("the busy instance is tried again in a minute, not at %s", progress.Next)
		}
	})
}

// cutState splits a text from targets at the first colon into the state and the description.
func cutState(target string) (state, description string, found bool) {
	for i := range target {
		if target[i] == ':' {
			return target[:i], target[i+1:], true
		}
	}

	return target, "", false
}

func TestWorkers(t *testing.T) {
	eachDatabase(t, func(f *stepped) {
		f.fill(50) // 13 of gcp, 37 of aws: 13 in us-east-1 and 24 in eu-central-1

		parameters := all(45)
		parameters.Strategy.Parallel.WorkersPerRegion, parameters.Strategy.Parallel.WorkersPerProvider = 12, 20
		conductor := f.start(environment.KindUpgradeCluster, parameters)

		progress := f.advance(conductor)
		f.wantStats("one transaction starts 20", map[string]int{"in progress": 20, "pending": 30})

		if !progress.Next.Equal(began) {
			f.Errorf("the next batch starts at once, not at %s", progress.Next)
		}

		progress = f.advance(conductor)
		f.wantStats("at most 20 at aws and 12 in each region", map[string]int{"in progress": 32, "pending": 18})

		if !progress.Next.IsZero() {
			f.Errorf("nothing can start before another upgrade ends, but the conductor comes back at %s", progress.Next)
		}
	})
}

func TestCancel(t *testing.T) {
	eachDatabase(t, func(f *stepped) {
		f.fill(3)

		conductor := f.start(environment.KindUpgradeCluster, all(1))
		f.advance(conductor)

		for range 2 { // the second one does nothing
			if err := f.Cancel(f.Context(), f.id); err != nil {
				f.Fatal(err)
			}
		}

		if progress := f.advance(conductor); progress.Done {
			f.Errorf("an upgrade runs: %+v", progress)
		}

		f.wantStats("pending targets are canceled", map[string]int{"in progress": 1, "canceled": 2})

		if _, err := f.Retry(f.Context(), f.id, orchestration.Retry{}); !failure.Is(err, failure.Conflict) {
			f.Errorf("a retry meanwhile: %v", err)
		}

		f.end(process.Succeeded)

		if progress := f.advance(conductor); !progress.Done {
			f.Errorf("got %+v", progress)
		}

		if err := f.finish(conductor); err != nil {
			f.Error(err)
		}

		if got, _ := f.get(f.id); got.State != environment.OrchestrationCanceled || got.Description != "1 succeeded, 2 canceled" {
			f.Errorf("got %+v", got)
		}

		if err := f.Cancel(f.Context(), f.id); err != nil {
			f.Errorf("a canceled orchestration: %v", err)
		}

		if err := f.Cancel(f.Context(), "other"); !failure.Is(err, failure.NotFound) {
			f.Errorf("an unknown orchestration: %v", err)
		}
	})
}

// TestCancelWithoutAConductor cancels an orchestration whose conductor has failed. In Kyma Environment Broker, such an
// orchestration stayed canceling forever.
func TestCancelWithoutAConductor(t *testing.T) {
	eachDatabase(t, func(f *stepped) {
		f.fill(1)

		conductor := f.start(environment.KindUpgradeCluster, all(1))
		conductor.State, conductor.FinishedAt = process.Failed, began

		if _, err := f.operations.Save(f.Context(), process.Progress{Record: conductor, Release: true, Now: began}); err != nil {
			f.Fatal(err)
		}

		if err := f.Cancel(f.Context(), f.id); err != nil {
			f.Fatal(err)
		}

		next := f.claim()

		if progress := f.advance(next); !progress.Done {
			f.Errorf("got %+v", progress)
		}

		if err := f.finish(next); err != nil {
			f.Error(err)
		}

		if got, _ := f.get(f.id); got.State != environment.OrchestrationCanceled {
			f.Errorf("got %+v", got)
		}
	})
}

func TestCancelBeforePlanned(t *testing.T) {
	eachDatabase(t, func(f *stepped) {
		f.fill(1)
		f.id, _ = f.order(all(1))

		if err := f.Cancel(f.Context(), f.id); err != nil {
			f.Fatal(err)
		}

		conductor := f.claim()
		if err := f.Plan(f.Context(), conductor); err != nil {
			f.Fatal(err)
		}

		if progress := f.advance(conductor); !progress.Done || f.finish(conductor) != nil {
			f.Errorf("got %+v", progress)
		}

		f.wantStats("nothing is planned", nil)
	})
}

// TestCanceledUpgrade cancels the running upgrade of one target. The next one starts, and the orchestration does not fail.
func TestCanceledUpgrade(t *testing.T) {
	eachDatabase(t, func(f *stepped) {
		f.fill(2)

		conductor := f.start(environment.KindUpgradeCluster, all(1))
		f.advance(conductor)

		now := f.clock.Now()
		running := storagetest.Claim(f, f.operations, process.Claim{Owner: "test", Limit: 1, Now: now, Until: now.Add(time.Minute)}, environment.KindUpgradeCluster)

		f.tx(func(tx storage.Tx) error {
			_, err := f.operations.CancelOne(f.Context(), tx, running[0].Record.ID, "by an operator", now)

			return err
		})
		f.advance(conductor)
		f.wantStats("it runs until its next safe point", map[string]int{"canceling": 1, "pending": 1})

		record := running[0].Record
		record.State, record.FinishedAt = process.Succeeded, now

		if _, err := f.operations.Save(f.Context(), process.Progress{Record: record, Release: true, Now: now}); err != nil {
			f.Fatal(err)
		}

		f.advance(conductor)
		f.wantStats("the next one starts", map[string]int{"canceled": 1, "in progress": 1})
		f.endUpgrades(0)

		if progress := f.advance(conductor); !progress.Done || f.finish(conductor) != nil {
			f.Errorf("got %+v", progress)
		}

		if got, _ := f.get(f.id); got.State != environment.OrchestrationSucceeded || got.Description != "1 succeeded, 1 canceled" {
			f.Errorf("got %+v", got)
		}
	})
}

func TestRetry(t *testing.T) {
	eachDatabase(t, func(f *stepped) {
		f.fill(3)

		conductor := f.start(environment.KindUpgradeCluster, all(3))
		f.advance(conductor)
		f.end(process.Failed)
		f.advance(conductor)

		if err := f.finish(conductor); err != nil {
			f.Fatal(err)
		}

		listed, _, err := f.Conductor.Orchestrations.ListTargets(f.Context(), f.id, orchestrations.Filter{Limit: 9})
		if err != nil {
			f.Fatal(err)
		}

		first := listed[0].OperationID

		retried, err := f.Retry(f.Context(), f.id, orchestration.Retry{OperationIDs: []string{first, "other", first}})
		if err != nil || len(retried.Targets) != 1 || retried.Targets[0].ShootName != "c-i00000" || !cmp.Equal(retried.Invalid, []string{"other"}) {
			f.Errorf("retried %+v, %v", retried, err)
		}

		if got, _ := f.get(f.id); got.State != environment.OrchestrationRetrying || got.Description != "3 failed; retried 1 operation" {
			f.Errorf("got %+v", got)
		}

		f.wantStats("one is retried", map[string]int{"retrying": 1, "failed": 2})

		next := f.claim()
		f.advance(next)

		again, err := f.Retry(f.Context(), f.id, orchestration.Retry{OperationIDs: []string{first}})
		if err != nil || len(again.Targets) != 0 || !cmp.Equal(again.Old, []string{first}) {
			f.Errorf("a repeated retry: %+v, %v", again, err)
		}

		f.clock.SetTime(began.Add(time.Second))
		f.end(process.Succeeded)
		f.advance(next)

		// A retry that arrives before the end keeps the orchestration running.
		if _, err := f.Retry(f.Context(), f.id, orchestration.Retry{}); err != nil {
			f.Fatal(err)
		}

		if err := f.finish(next); !failure.Is(err, failure.Transient) {
			f.Errorf("the end with pending targets: %v", err)
		}

		f.advance(next)
		f.wantStats("the others are retried", map[string]int{"succeeded": 1, "in progress": 2})

		record, err := f.operations.OfInstance(f.Context(), f.db.Reader(), "i00000")
		if err != nil || record[0].PredecessorID != first {
			f.Errorf("the retry names its predecessor: %+v, %v", record, err)
		}

		if _, err := f.Retry(f.Context(), f.id, orchestration.Retry{OperationIDs: make([]string, 1001)}); !failure.Is(err, failure.Invalid) {
			f.Errorf("too many IDs: %v", err)
		}

		if _, err := f.Retry(f.Context(), "other", orchestration.Retry{}); !failure.Is(err, failure.NotFound) {
			f.Errorf("an unknown orchestration: %v", err)
		}
	})
}

func TestDryRunAndVersion(t *testing.T) {
	eachDatabase(t, func(f *stepped) {
		f.create("one", environment.KindProvision, process.Succeeded, func(*environment.Instance) {})

		parameters := all(1)
		parameters.DryRun, parameters.Kyma, parameters.Kubernetes = true, &fleet.Kyma{Version: "9"}, &fleet.Kubernetes{KubernetesVersion: "1.35.1"}
		f.advance(f.start(environment.KindUpgradeCluster, parameters))

		claimed := storagetest.Claim(f, f.operations, process.Claim{Owner: "x", Limit: 9, Now: began, Until: began}, environment.KindUpgradeCluster)

		var data environment.Data
		if len(claimed) != 1 || data.UnmarshalJSON(claimed[0].Record.Payload) != nil {
			f.Fatalf("claimed %+v", claimed)
		}

		if diff := cmp.Diff(&environment.Upgrade{Version: "1.35.1", DryRun: true}, data.Upgrade); diff != "" {
			f.Errorf("-want +got\n%s", diff)
		}
	})
}

func TestInvalidOrder(t *testing.T) {
	eachDatabase(t, func(f *stepped) {
		for reason, c := range map[string]struct {
			kind   string
			change func(*fleet.Parameters)
		}{
			"no target":               {environment.KindUpgradeKyma, func(p *fleet.Parameters) { p.Targets = fleet.Targets{} }},
			"no Kyma version":         {environment.KindUpgradeKyma, func(p *fleet.Parameters) { p.Kyma = &fleet.Kyma{Version: "2 0"} }},
			"a v is no version":       {environment.KindUpgradeCluster, func(p *fleet.Parameters) { p.Kubernetes = &fleet.Kubernetes{KubernetesVersion: "v1.35"} }},
			"a major version is none": {environment.KindUpgradeCluster, func(p *fleet.Parameters) { p.Kubernetes = &fleet.Kubernetes{KubernetesVersion: "1"} }},
		} {
			parameters := all(1)
			c.change(&parameters)

			_, err := f.Create(f.Context(), c.kind, parameters)
			_, planErr := f.CreatePlan(f.Context(), c.kind, parameters)

			if !failure.Is(err, failure.Invalid) || !failure.Is(planErr, failure.Invalid) {
				f.Errorf("%s: got %v, and for a plan %v", reason, err, planErr)
			}
		}
	})
}

// TestLostLease checks that a replica that has lost its lease changes nothing.
func TestLostLease(t *testing.T) {
	eachDatabase(t, func(f *stepped) {
		f.fill(1)

		conductor := f.start(environment.KindUpgradeCluster, all(1))
		conductor.Lease.Fence--

		if _, err := f.Advance(f.Context(), conductor); !failure.Is(err, failure.Transient) {
			f.Errorf("got %v", err)
		}

		f.wantUpgrades(0)
	})
}
