package orchestration_test

import (
	"fmt"
	"slices"
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
	"github.com/environment-broker/environment-broker/storage/auditlog"
	"github.com/environment-broker/environment-broker/storage/orchestrations"
	"github.com/environment-broker/environment-broker/storage/storagetest"
)

// endUpgrades ends all running upgrades and returns their number. failed is the number of upgrades that fail. The others succeed.
func (f *stepped) endUpgrades(failed int) int {
	f.Helper()

	return f.endWith(slices.Repeat([]string{"ERR_QUOTA"}, failed)...)
}

// endWith ends the running upgrades and returns their number. The first ones fail, one for each of the given reasons.
func (f *stepped) endWith(reasons ...string) int {
	f.Helper()

	now := f.clock.Now()
	works := storagetest.Claim(f, f.operations, process.Claim{Owner: "test", Limit: 100, Now: now, Until: now.Add(time.Minute)}, environment.KindUpgradeCluster)

	for i, work := range works {
		record := work.Record
		record.State, record.FinishedAt = process.Succeeded, now

		if i < len(reasons) {
			record.State = process.Failed
			record.Problem = process.Problem{Message: "no capacity in zone " + record.InstanceID, Reason: reasons[i], Component: "gardener"}
		}

		if _, err := f.operations.Save(f.Context(), process.Progress{Record: record, Release: true, Now: now}); err != nil {
			f.Fatal(err)
		}
	}

	return len(works)
}

// waves returns parameters for all instances with the waves.
func waves(workers int, gate *fleet.FailureGate, waves ...fleet.Wave) fleet.Parameters {
	parameters := all(workers)
	parameters.Strategy.Waves, parameters.Strategy.FailureGate = waves, gate

	return parameters
}

func (f *stepped) pass(time time.Duration) { f.clock.SetTime(f.clock.Now().Add(time)) }

// TestWaves upgrades canaries, lets them soak, then those with a label, then the rest.
func TestWaves(t *testing.T) {
	eachDatabase(t, func(f *stepped) {
		f.fill(10)
		f.tx(func(tx storage.Tx) error {
			for i := range 10 {
				if err := f.Conductor.Planner.Upgrader.Instances.SetLabels(f.Context(), tx, fmt.Sprintf("i%05d", i), map[string]string{"ring": []string{"early", "late"}[i%2]}); err != nil {
					return err
				}
			}

			return nil
		})

		conductor := f.start(environment.KindUpgradeCluster, waves(20, nil, fleet.Wave{Number: 2, Soak: "1h"}, fleet.Wave{Labels: "ring=other", Soak: "9h"}, fleet.Wave{Percentage: 30}))

		f.advance(conductor)
		f.wantStats("the canaries", map[string]int{"in progress": 2, "pending": 8})

		f.endUpgrades(0)

		progress := f.advance(conductor)
		if got, _ := f.get(f.id); !got.SoakUntil.Equal(began.Add(time.Hour)) || !progress.Next.Equal(began.Add(time.Hour)) ||
			got.Description != "Wave 1 of 4: 2 succeeded, 8 pending; the next wave begins at 2030-01-02T04:04:05Z" {
			f.Errorf("soaks: %+v, %+v", got, progress)
		}

		f.pass(time.Hour - time.Second)
		f.advance(conductor)
		f.wantStats("they soak", map[string]int{"succeeded": 2, "pending": 8})

		f.pass(time.Second)
		f.advance(conductor)
		f.wantStats("an empty wave is skipped", map[string]int{"succeeded": 2, "in progress": 3, "pending": 5})

		if got, _ := f.get(f.id); got.Wave != 3 || !got.SoakUntil.IsZero() {
			f.Errorf("got %+v", got)
		}

		f.endUpgrades(0)
		f.advance(conductor)
		f.wantStats("the rest, without a soak time", map[string]int{"succeeded": 5, "in progress": 5})

		f.endUpgrades(0)

		if progress := f.advance(conductor); !progress.Done || f.finish(conductor) != nil {
			f.Errorf("got %+v", progress)
		}
	})
}

// TestRetryWhileSoaking repeats a failed canary before the next wave, and soaks again.
func TestRetryWhileSoaking(t *testing.T) {
	eachDatabase(t, func(f *stepped) {
		f.fill(3)

		conductor := f.start(environment.KindUpgradeCluster, waves(5, nil, fleet.Wave{Number: 1, Soak: "1h"}))
		f.advance(conductor)
		f.endUpgrades(1)
		f.advance(conductor)

		if _, err := f.Retry(f.Context(), f.id, orchestration.Retry{}); err != nil {
			f.Fatal(err)
		}

		f.pass(2 * time.Hour)
		f.advance(conductor)
		f.wantStats("the canary is repeated, and the soak time is interrupted", map[string]int{"in progress": 1, "pending": 2})
		f.endUpgrades(0)
		f.advance(conductor)

		if got, _ := f.get(f.id); !got.SoakUntil.Equal(began.Add(3*time.Hour)) || got.Wave != 1 {
			f.Errorf("got %+v", got)
		}
	})
}

// TestEmptyFirstWave checks that an orchestration does not wait for a wave without targets, even if they were only left out when the
// plan was applied.
func TestEmptyFirstWave(t *testing.T) {
	eachDatabase(t, func(f *stepped) {
		f.fill(2)
		f.plan(waves(5, nil, fleet.Wave{Number: 1, Soak: "1h"}))

		planned, err := f.Conductor.Orchestrations.Pending(f.Context(), f.db.Reader(), f.id)
		if err != nil {
			f.Fatal(err)
		}

		for _, target := range planned {
			if target.Wave == 1 {
				f.setVersion(target.InstanceID, "1.34.9")
			}
		}

		if _, err := f.Apply(f.Context(), f.id, false); err != nil {
			f.Fatal(err)
		}

		f.advance(f.claim())
		f.wantStats("the second wave", map[string]int{"left out": 1, "in progress": 1})
	})
}

// TestWaveOfDeletedInstances begins the next wave at once if all instances of a wave have been deleted.
func TestWaveOfDeletedInstances(t *testing.T) {
	eachDatabase(t, func(f *stepped) {
		f.fill(1)
		f.create("canary", environment.KindProvision, process.Succeeded, func(*environment.Instance) {})
		f.tx(func(tx storage.Tx) error {
			return f.Conductor.Planner.Upgrader.Instances.SetLabels(f.Context(), tx, "canary", map[string]string{"ring": "canary"})
		})

		conductor := f.start(environment.KindUpgradeCluster, waves(5, nil, fleet.Wave{Labels: "ring=canary", Soak: "1h"}))
		f.exec(`DELETE FROM instances WHERE id = 'canary'`)

		if progress := f.advance(conductor); !progress.Next.Equal(began) {
			f.Errorf("got %+v", progress)
		}

		f.advance(conductor)
		f.wantStats("the rest runs", map[string]int{"canceled": 1, "in progress": 1})
	})
}

// TestFailureGate stops after failures, names the most common error, and continues without counting accepted failures.
func TestFailureGate(t *testing.T) {
	eachDatabase(t, func(f *stepped) {
		f.fill(12)

		conductor := f.start(environment.KindUpgradeCluster, waves(3, &fleet.FailureGate{Failures: 2}))
		f.advance(conductor)
		f.endUpgrades(1)
		f.advance(conductor)
		f.wantStats("one failure is allowed", map[string]int{"succeeded": 2, "failed": 1, "in progress": 3, "pending": 6})
		f.endUpgrades(1)

		progress := f.advance(conductor)
		got, _ := f.get(f.id)

		want := "Stopped by the failure gate: 2 of 12 upgrades failed: no capacity in zone i"
		if got.State != environment.OrchestrationGated || !strings.HasPrefix(got.Description, want) || !strings.HasSuffix(got.Description, "(ERR_QUOTA, gardener)") ||
			progress.Text != got.Description || progress.Done || !progress.Next.IsZero() {
			f.Fatalf("got %+v, %+v", got, progress)
		}

		f.pass(time.Hour)
		f.advance(conductor)
		f.wantStats("nothing starts", map[string]int{"succeeded": 4, "failed": 2, "pending": 6})

		if again, _ := f.get(f.id); again.Description != got.Description {
			f.Errorf("the reason is lost: %s", again.Description)
		}

		if err := f.Pause(f.Context(), f.id); err != nil {
			f.Error(err)
		}

		if err := f.Resume(f.Context(), f.id); err != nil {
			f.Fatal(err)
		}

		f.advance(conductor)
		f.wantStats("accepted failures do not count", map[string]int{"succeeded": 4, "failed": 2, "in progress": 3, "pending": 3})

		if _, err := f.Retry(f.Context(), f.id, orchestration.Retry{}); err != nil {
			f.Fatal(err)
		}

		// Two targets wait, so both retries run next.
		f.accept(environment.KindUpdate, environment.Instance{ID: "i00010"}, process.Pending)
		f.accept(environment.KindUpdate, environment.Instance{ID: "i00011"}, process.Pending)
		f.endUpgrades(0)
		f.advance(conductor)
		f.wantStats("the retries run", map[string]int{"succeeded": 7, "in progress": 3, "pending": 2})
		f.endUpgrades(3)
		f.advance(conductor)

		if got, _ := f.get(f.id); got.State != environment.OrchestrationGated {
			f.Errorf("failures of retries count: %+v", got)
		}

		if err := f.Cancel(f.Context(), f.id); err != nil {
			f.Fatal(err)
		}

		if progress := f.advance(conductor); !progress.Done || f.finish(conductor) != nil {
			f.Errorf("got %+v", progress)
		}

		if got, _ := f.get(f.id); got.State != environment.OrchestrationCanceled {
			f.Errorf("got %+v", got)
		}
	})
}

// TestGateOfACanary checks that the percentage of the failure gate counts only the waves that have begun: the first wave is a canary.
func TestGateOfACanary(t *testing.T) {
	eachDatabase(t, func(f *stepped) {
		f.fill(10)

		conductor := f.start(environment.KindUpgradeCluster, waves(5, &fleet.FailureGate{Percentage: 50}, fleet.Wave{Number: 1}))
		f.advance(conductor)
		f.endUpgrades(1)
		f.advance(conductor)

		want := "Stopped by the failure gate: 1 of 1 upgrade failed: "
		if got, _ := f.get(f.id); got.State != environment.OrchestrationGated || !strings.HasPrefix(got.Description, want) {
			f.Errorf("got %+v, want %q", got, want)
		}

		f.wantStats("nothing else starts", map[string]int{"failed": 1, "pending": 9})
	})
}

// TestMostCommonError checks that the failure gate names the most common of different errors.
func TestMostCommonError(t *testing.T) {
	eachDatabase(t, func(f *stepped) {
		f.fill(4)

		conductor := f.start(environment.KindUpgradeCluster, waves(3, &fleet.FailureGate{Failures: 3}))
		f.advance(conductor)
		f.endWith("ERR_ACCESS", "ERR_QUOTA", "ERR_QUOTA")
		f.advance(conductor)

		want := "Stopped by the failure gate: 3 of 4 upgrades failed. The most common error, in 2 of them: no capacity in zone "
		if got, _ := f.get(f.id); !strings.HasPrefix(got.Description, want) || !strings.HasSuffix(got.Description, " (ERR_QUOTA, gardener)") {
			f.Errorf("got %q, want %q", got.Description, want)
		}
	})
}

// TestNothingLeftToStop ends an orchestration whose last upgrades fail, instead of stopping it.
func TestNothingLeftToStop(t *testing.T) {
	eachDatabase(t, func(f *stepped) {
		f.fill(2)

		conductor := f.start(environment.KindUpgradeCluster, waves(3, &fleet.FailureGate{Percentage: 50}))
		f.advance(conductor)
		f.endUpgrades(2)

		if progress := f.advance(conductor); !progress.Done || f.finish(conductor) != nil {
			f.Errorf("got %+v", progress)
		}

		if got, _ := f.get(f.id); got.State != environment.OrchestrationFailed {
			f.Errorf("got %+v", got)
		}
	})
}

// TestGateAfterAPartialRetry retries one of the failures of an orchestration that has ended. The gate does not count the others again.
func TestGateAfterAPartialRetry(t *testing.T) {
	eachDatabase(t, func(f *stepped) {
		f.fill(4)

		conductor := f.start(environment.KindUpgradeCluster, waves(4, &fleet.FailureGate{Failures: 2}))
		f.advance(conductor)
		f.endUpgrades(3)
		f.advance(conductor)

		if err := f.finish(conductor); err != nil {
			f.Fatal(err)
		}

		failed, _, err := f.Conductor.Orchestrations.ListTargets(f.Context(), f.id, orchestrations.Filter{States: []string{"failed"}, Limit: 1})
		if err != nil || len(failed) != 1 {
			f.Fatalf("got %v, %v", failed, err)
		}

		if _, err := f.Retry(f.Context(), f.id, orchestration.Retry{OperationIDs: []string{failed[0].OperationID}}); err != nil {
			f.Fatal(err)
		}

		conductor = f.claim()
		f.advance(conductor)
		f.wantStats("the retry starts", map[string]int{"failed": 2, "in progress": 1, "succeeded": 1})

		if got, _ := f.get(f.id); got.State != environment.OrchestrationInProgress {
			f.Errorf("the orchestration is %s: %s", got.State, got.Description)
		}
	})
}

func TestPause(t *testing.T) {
	eachDatabase(t, func(f *stepped) {
		f.fill(3)

		f.id, _ = f.order(all(1))
		if err := f.Pause(f.Context(), f.id); !failure.Is(err, failure.Conflict) {
			f.Errorf("before it is planned: %v", err)
		}

		if err := f.Resume(f.Context(), f.id); err != nil {
			f.Errorf("before it is planned: %v", err)
		}

		conductor := f.claim()
		if err := f.Plan(f.Context(), conductor); err != nil {
			f.Fatal(err)
		}

		f.advance(conductor)

		for range 2 { // the second does nothing
			if err := f.Pause(f.Context(), f.id); err != nil {
				f.Fatal(err)
			}
		}

		f.endUpgrades(0)

		if progress := f.advance(conductor); progress.Done || progress.Text != "Paused by an unauthenticated user" {
			f.Errorf("got %+v", progress)
		}

		f.wantStats("nothing starts", map[string]int{"succeeded": 1, "pending": 2})

		for range 2 {
			if err := f.Resume(f.Context(), f.id); err != nil {
				f.Fatal(err)
			}
		}

		f.advance(conductor)
		f.wantStats("it continues", map[string]int{"succeeded": 1, "in progress": 1, "pending": 1})

		if err := f.Cancel(f.Context(), f.id); err != nil {
			f.Fatal(err)
		}

		for reason, change := range map[string]error{"pause": f.Pause(f.Context(), f.id), "resume": f.Resume(f.Context(), f.id)} {
			if !failure.Is(change, failure.Conflict) {
				f.Errorf("%s of a canceled orchestration: %v", reason, change)
			}
		}

		if err := f.Pause(f.Context(), "other"); !failure.Is(err, failure.NotFound) {
			f.Errorf("an unknown orchestration: %v", err)
		}

		entries, err := f.entries.List(f.Context(), auditlog.Filter{Limit: 9})
		if err != nil {
			f.Fatal(err)
		}

		actions := map[string]int{}
		for _, entry := range entries {
			actions[entry.Action]++
		}

		if diff := cmp.Diff(map[string]int{"orchestrate": 1, "pause": 1, "resume": 1, "cancel": 1, "upgradeCluster": 2}, actions); diff != "" {
			f.Errorf("audit log -want +got\n%s", diff)
		}
	})
}

// TestExplain explains each state.
func TestExplain(t *testing.T) {
	t.Parallel()

	parameters := waves(5, &fleet.FailureGate{Failures: 3})
	parameters.Strategy.Parallel.WorkersPerRegion = 2

	for name, c := range map[string]struct {
		change func(*environment.Orchestration)
		waves  map[int]map[string]int
		want   string
	}{
		"planned":  {func(o *environment.Orchestration) { o.State = environment.OrchestrationPlanned }, nil, "possible until 2030-01-09T03:04:05Z"},
		"expired":  {func(o *environment.Orchestration) { o.State = environment.OrchestrationExpired }, nil, "Make a new one"},
		"pending":  {func(o *environment.Orchestration) { o.State = environment.OrchestrationPending }, nil, "being selected"},
		"paused":   {func(o *environment.Orchestration) { o.State = environment.OrchestrationPaused }, nil, "Paused by me. No upgrades start; those in progress run to completion.\nContinue with 'ebctl orchestration resume o'"},
		"gated":    {func(o *environment.Orchestration) { o.State = environment.OrchestrationGated }, nil, "'ebctl orchestration targets o --state failed'"},
		"canceled": {func(o *environment.Orchestration) { o.State = environment.OrchestrationCanceling }, nil, "No more upgrades will start"},
		"failed":   {func(o *environment.Orchestration) { o.State = environment.OrchestrationFailed }, nil, "'ebctl orchestration retry o'"},
		"ended":    {func(o *environment.Orchestration) { o.State = environment.OrchestrationSucceeded }, nil, "Paused by me."},
		"later":    {func(o *environment.Orchestration) { o.Parameters.Strategy.ScheduleTime = began.Add(time.Hour) }, nil, "Nothing starts before 2030-01-02T04:04:05Z"},
		"soaks":    {func(o *environment.Orchestration) { o.SoakUntil = began.Add(time.Hour) }, nil, "Wave 1 has ended. The next one begins at 2030-01-02T04:04:05Z"},
		"full": {
			func(*environment.Orchestration) {},
			map[int]map[string]int{1: {"in progress": 5, "pending": 4}, 2: {"pending": 9}},
			"5 upgrades in progress, and 4 instances waiting. At most 5 run at once, 2 in a region.\nThe orchestration stops after 3 failures.",
		},
		"busy": {func(*environment.Orchestration) {}, map[int]map[string]int{1: {"pending": 4}}, "No upgrade is in progress. Instances that wait for another operation, a maintenance window or the start of their upgrade: 4."},
		"last": {func(*environment.Orchestration) {}, map[int]map[string]int{1: {"in progress": 1}}, "1 upgrade in progress, and no other instance of this wave is waiting."},
	} {
		t.Run(name, func(t *testing.T) {
			o := environment.Orchestration{
				ID: "o", State: environment.OrchestrationInProgress, Description: "Paused by me", CreatedAt: began, Wave: 1, Parameters: parameters,
			}
			c.change(&o)

			if got := strings.Join(orchestration.Explain(o, c.waves, began), "\n"); !strings.Contains(got, c.want) {
				t.Errorf("got %s\nwant %s", got, c.want)
			}
		})
	}
}
