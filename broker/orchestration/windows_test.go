package orchestration_test

import (
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/environment-broker/environment-broker/broker/orchestration"
	"github.com/environment-broker/environment-broker/internal/environment"
	"github.com/environment-broker/environment-broker/internal/environment/fleet"
	"github.com/environment-broker/environment-broker/internal/failure"
	"github.com/environment-broker/environment-broker/process"
	"github.com/environment-broker/environment-broker/resources"
	"github.com/environment-broker/environment-broker/storage"
	"github.com/environment-broker/environment-broker/storage/storagetest"
)

// setPolicy sets the maintenance policy of the catalog.
func (f *fixture) setPolicy(policy string) {
	f.Helper()

	files := fstest.MapFS{}

	if err := fs.WalkDir(resources.Catalog(), ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}

		content, err := fs.ReadFile(resources.Catalog(), name)
		if name == "catalog.yaml" {
			content = append(content, "\nmaintenancePolicy: "+policy...)
		}

		files[name] = &fstest.MapFile{Data: content}

		return err
	}); err != nil {
		f.Fatal(err)
	}

	if err := f.Conductor.Planner.Upgrader.Catalog.Reload(files); err != nil {
		f.Fatal(err)
	}
}

// inWindows returns parameters for all instances in their maintenance windows.
func inWindows(workers int) fleet.Parameters {
	parameters := all(workers)
	parameters.Strategy.MaintenanceWindow = true

	return parameters
}

// startTimes returns when the upgrades were accepted, by instance.
func (f *fixture) startTimes() map[string][]time.Time {
	f.Helper()

	rows, err := storage.Select[struct {
		InstanceID string       `db:"instance_id"`
		CreatedAt  storage.Time `db:"created_at"`
	}](f.Context(), f.db.Reader(), `SELECT instance_id, created_at FROM operations WHERE kind = 'upgradeCluster' ORDER BY created_at`)
	if err != nil {
		f.Fatal(err)
	}

	times := map[string][]time.Time{}
	for _, row := range rows {
		times[row.InstanceID] = append(times[row.InstanceID], row.CreatedAt.Time)
	}

	return times
}

// TestWindowsAcrossClockChanges runs an orchestration over the change to daylight saving time and over the change back. One worker
// needs several occurrences of each window. Upgrades start only while the clocks of the zone show a time in the window.
func TestWindowsAcrossClockChanges(t *testing.T) {
	windows := map[string]struct {
		zone       string
		begin, end int // minutes since midnight
	}{
		"europe-west3": {"Europe/Berlin", 90, 210},    // over the hour that is skipped or repeated
		"us-east-1":    {"America/New_York", 75, 150}, // ends in that hour
		"eu-central-1": {"+0100", 150, 180},           // a Shoot without daylight saving
	}

	for _, start := range []string{"2030-03-09T18:00:00Z", "2030-03-30T12:00:00Z", "2030-10-26T12:00:00Z", "2030-11-02T12:00:00Z"} {
		t.Run(start, func(t *testing.T) {
			eachDatabase(t, func(f *stepped) {
				f.setPolicy(`{rules: [
					{match: {region: europe-west3}, timeBegin: "01:30", timeEnd: "03:30", timeZone: Europe/Berlin},
					{match: {region: us-east-1}, timeBegin: "01:15", timeEnd: "02:30", timeZone: America/New_York}],
					default: {timeBegin: 023000+0100, timeEnd: 030000+0100}}`)

				now, _ := time.Parse(time.RFC3339, start)
				f.clock.SetTime(now)
				f.fill(24)

				conductor := f.start(environment.KindUpgradeCluster, inWindows(1))

				for passed := time.Duration(0); !f.advance(conductor).Done; passed += 10 * time.Minute {
					if passed > 4*24*time.Hour {
						t.Fatal("the orchestration has not ended")
					}

					f.pass(10 * time.Minute)
					f.endUpgrades(0)
				}

				f.wantUpgrades(1)

				for instance, times := range f.startTimes() {
					region := map[byte]string{'0': "europe-west3", '1': "us-east-1"}[byte('0'+number(t, instance)%4)]
					window := windows[region]
					if region == "" {
						window = windows["eu-central-1"]
					}

					zone := time.FixedZone("", 3600)
					if loaded, err := time.LoadLocation(window.zone); err == nil {
						zone = loaded
					}

					local := times[0].In(zone)
					if minute := local.Hour()*60 + local.Minute(); minute < window.begin || minute >= window.end {
						t.Errorf("%s in %s started at %s", instance, region, local)
					}
				}
			})
		})
	}
}

func number(t *testing.T, instance string) (parsed int) {
	t.Helper()

	if _, err := fmt.Sscanf(instance, "i%d", &parsed); err != nil {
		t.Fatal(err)
	}

	return parsed
}

// TestNoWindow leaves out instances without a window.
func TestNoWindow(t *testing.T) {
	eachDatabase(t, func(f *stepped) {
		f.setPolicy(`{rules: [{match: {region: us-east-1}, timeBegin: 030000+0000, timeEnd: 040000+0000}]}`)
		f.fill(4)

		conductor := f.start(environment.KindUpgradeCluster, inWindows(9))
		f.advance(conductor)
		f.wantStats("only one has a window", map[string]int{"in progress": 1, "left out": 3})
	})
}

// TestShootWindow uses the stored window of the Shoot if neither the policy nor the plan has one.
func TestShootWindow(t *testing.T) {
	eachDatabase(t, func(f *stepped) {
		f.fill(2)

		if err := f.Conductor.Orchestrations.SetShootWindow(f.Context(), "i00001", fleet.WindowTimes{Begin: "050000+0100", End: "060000+0100"}, began); err != nil {
			f.Fatal(err)
		}

		conductor := f.start(environment.KindUpgradeCluster, inWindows(9))
		if progress := f.advance(conductor); !progress.Next.Equal(time.Date(2030, 1, 2, 4, 0, 0, 0, time.UTC)) {
			f.Errorf("before the window: %+v", progress)
		}

		f.pass(time.Hour)
		f.advance(conductor)
		f.wantStats("only one window is known", map[string]int{"in progress": 1, "left out": 1})
	})
}

// window1 is a policy with a window from 04:00 to 05:00. It begins 55 minutes and 55 seconds after began.
const window1 = `{default: {timeBegin: 040000+0000, timeEnd: 050000+0000}}`

// TestRetryInWindow checks that a retry waits for its window: it starts at once within the window, and otherwise in the next one.
func TestRetryInWindow(t *testing.T) {
	eachDatabase(t, func(f *stepped) {
		f.setPolicy(window1)
		f.fill(2)

		conductor := f.start(environment.KindUpgradeCluster, inWindows(9))
		if progress := f.advance(conductor); !progress.Next.Equal(time.Date(2030, 1, 2, 4, 0, 0, 0, time.UTC)) {
			f.Errorf("before the window: %+v", progress)
		}

		f.pass(time.Hour)
		f.advance(conductor)
		f.endUpgrades(1)

		if _, err := f.Retry(f.Context(), f.id, orchestration.Retry{}); err != nil {
			f.Fatal(err)
		}

		f.advance(conductor)
		f.wantStats("the window is open", map[string]int{"in progress": 1, "succeeded": 1})

		f.pass(time.Hour)
		f.endUpgrades(1)

		if _, err := f.Retry(f.Context(), f.id, orchestration.Retry{}); err != nil {
			f.Fatal(err)
		}

		if progress := f.advance(conductor); !progress.Next.Equal(time.Date(2030, 1, 3, 4, 0, 0, 0, time.UTC)) {
			f.Errorf("after the window: %+v", progress)
		}

		f.wantStats("the window is over", map[string]int{"retrying": 1, "succeeded": 1})
	})
}

// TestImmediateRetry retries outside the window at once.
func TestImmediateRetry(t *testing.T) {
	eachDatabase(t, func(f *stepped) {
		f.setPolicy(window1)
		f.fill(2)

		conductor := f.start(environment.KindUpgradeCluster, inWindows(9))
		f.pass(time.Hour)
		f.advance(conductor)
		f.pass(time.Hour)
		f.endUpgrades(2)

		if _, err := f.Retry(f.Context(), f.id, orchestration.Retry{Immediate: true}); err != nil {
			f.Fatal(err)
		}

		f.advance(conductor)
		f.wantStats("the window is over", map[string]int{"in progress": 2})
	})
}

// TestBusyInWindow waits for the operation of a tenant, and then for the next window.
func TestBusyInWindow(t *testing.T) {
	eachDatabase(t, func(f *stepped) {
		f.setPolicy(window1)
		f.fill(1)
		f.clock.SetTime(time.Date(2030, 1, 2, 4, 59, 30, 0, time.UTC))

		instance, err := f.Conductor.Planner.Upgrader.Instances.Get(f.Context(), f.db.Reader(), "i00000")
		if err != nil {
			f.Fatal(err)
		}

		conductor := f.start(environment.KindUpgradeCluster, inWindows(9))
		f.accept(environment.KindUpdate, instance, process.InProgress)
		f.advance(conductor)
		f.wantStats("the tenant goes first", map[string]int{"pending": 1})

		f.pass(time.Minute)

		if progress := f.advance(conductor); !progress.Next.Equal(time.Date(2030, 1, 3, 4, 0, 0, 0, time.UTC)) {
			f.Errorf("got %+v", progress)
		}
	})
}

// TestUnstartedUpgrades checks that an upgrade that the engine did not start in its window is repeated in the next one. Such an
// upgrade fails with its own reason, but its target has not failed.
func TestUnstartedUpgrades(t *testing.T) {
	eachDatabase(t, func(f *stepped) {
		f.setPolicy(window1)
		f.fill(1)

		parameters := inWindows(9)
		parameters.Strategy.FailureGate = &fleet.FailureGate{Failures: 1}

		f.pass(time.Hour)

		conductor := f.start(environment.KindUpgradeCluster, parameters)
		f.advance(conductor)
		f.pass(time.Hour)

		works := storagetest.Claim(f, f.operations, process.Claim{Owner: "test", Limit: 1, Now: f.clock.Now(), Until: f.clock.Now().Add(time.Minute)}, environment.KindUpgradeCluster)
		if data := string(works[0].Record.Payload); !strings.Contains(data, `"notAfter":"2030-01-02T05:00:00Z"`) {
			f.Errorf("the upgrade does not know its window: %s", data)
		}

		record := works[0].Record
		record.State, record.FinishedAt, record.Problem.Reason = process.Failed, f.clock.Now(), failure.ReasonNotStarted

		if _, err := f.operations.Save(f.Context(), process.Progress{Record: record, Release: true, Now: f.clock.Now()}); err != nil {
			f.Fatal(err)
		}

		f.advance(conductor)
		f.wantStats("it waits", map[string]int{"pending": 1})

		f.pass(23 * time.Hour)
		f.advance(conductor)
		f.endUpgrades(0)
		f.advance(conductor)
		f.wantStats("the next window", map[string]int{"succeeded": 1})
	})
}

// TestDeadline checks that no upgrade starts after the deadline, and that targets whose windows begin later are left out.
func TestDeadline(t *testing.T) {
	eachDatabase(t, func(f *stepped) {
		f.setPolicy(`{rules: [{match: {region: us-east-1}, timeBegin: 050000+0000, timeEnd: 060000+0000}], default: {timeBegin: 040000+0000, timeEnd: 050000+0000}}`)
		f.fill(4)

		parameters := inWindows(1)
		parameters.Strategy.Deadline = time.Date(2030, 1, 2, 4, 30, 0, 0, time.UTC)

		conductor := f.start(environment.KindUpgradeCluster, parameters)
		f.wantStats("one window begins after the deadline", map[string]int{"pending": 3, "left out": 1})

		f.pass(time.Hour)
		f.advance(conductor)

		works := storagetest.Claim(f, f.operations, process.Claim{Owner: "test", Limit: 1, Now: f.clock.Now(), Until: f.clock.Now().Add(time.Minute)}, environment.KindUpgradeCluster)
		if data := string(works[0].Record.Payload); !strings.Contains(data, `"notAfter":"2030-01-02T04:30:00Z"`) {
			f.Errorf("the upgrade does not know its deadline: %s", data)
		}

		f.pass(time.Hour)
		f.advance(conductor)
		f.wantStats("the deadline has passed", map[string]int{"in progress": 1, "canceled": 2, "left out": 1})
	})
}

// TestDeadlineAfterWindow checks that targets whose next window begins after the deadline are canceled as soon as the current window
// has ended.
func TestDeadlineAfterWindow(t *testing.T) {
	eachDatabase(t, func(f *stepped) {
		f.setPolicy(window1)
		f.fill(2)

		parameters := inWindows(1)
		parameters.Strategy.Deadline = began.Add(5 * time.Hour)

		f.pass(time.Hour)

		conductor := f.start(environment.KindUpgradeCluster, parameters)
		f.advance(conductor)
		f.pass(time.Hour)
		f.advance(conductor)
		f.wantStats("the next window begins after the deadline", map[string]int{"in progress": 1, "canceled": 1})
	})
}

// TestApplyMovesWindows checks that an orchestration uses the windows that are valid when the plan is applied.
func TestApplyMovesWindows(t *testing.T) {
	eachDatabase(t, func(f *stepped) {
		f.setPolicy(window1)
		f.fill(3)
		f.plan(inWindows(9))
		f.setPolicy(`{rules: [{match: {region: us-east-1}, timeBegin: 060000+0000, timeEnd: 070000+0000}], default: {timeBegin: 040000+0000, timeEnd: 050000+0000}}`)

		if changed, err := f.Apply(f.Context(), f.id, true); err != nil || len(changed) != 0 {
			f.Fatalf("changed: %+v, %v", changed, err)
		}

		pending, err := f.Conductor.Orchestrations.Pending(f.Context(), f.db.Reader(), f.id)
		if err != nil {
			f.Fatal(err)
		}

		got := make([]string, 0, len(pending))
		for _, target := range pending {
			got = append(got, fmt.Sprintf("%s %s %s", target.InstanceID, target.Window, target.NotBefore.Format("15:04")))
		}

		if want := []string{
			"i00000 daily 04:00:00-05:00:00 +00:00 04:00", "i00001 daily 06:00:00-07:00:00 +00:00 06:00", "i00002 daily 04:00:00-05:00:00 +00:00 04:00",
		}; !slices.Equal(got, want) {
			f.Errorf("got %q, want %q", got, want)
		}
	})
}

// TestApplyAfterDeadline rejects a plan whose deadline has passed.
func TestApplyAfterDeadline(t *testing.T) {
	eachDatabase(t, func(f *stepped) {
		f.fill(1)

		parameters := all(1)
		parameters.Strategy.Deadline = began.Add(time.Hour)
		f.plan(parameters)
		f.pass(time.Hour)

		if _, err := f.Apply(f.Context(), f.id, false); !failure.Is(err, failure.Conflict) {
			f.Errorf("got %v", err)
		}
	})
}

// TestResumeKeepsUnstartedUpgrades resumes a gated orchestration while an upgrade has not started in its window: the target has not failed, and
// waits for the next window. A retry does not count it as a failure, either.
func TestResumeKeepsUnstartedUpgrades(t *testing.T) {
	for name, act := range map[string]func(*stepped) error{
		"resume": func(f *stepped) error { return f.Resume(f.Context(), f.id) },
		"retry": func(f *stepped) error {
			retried, err := f.Retry(f.Context(), f.id, orchestration.Retry{})
			if len(retried.Targets) != 1 || retried.Targets[0].InstanceID != "fails" {
				f.Errorf("retried %+v", retried.Targets)
			}

			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			eachDatabase(t, func(f *stepped) {
				for _, id := range []string{"fails", "late", "waits"} {
					f.create(id, environment.KindProvision, process.Succeeded, func(*environment.Instance) {})
				}

				f.setPolicy(`{default: {timeBegin: "00:00", timeEnd: "00:00", timeZone: UTC}}`)

				parameters := inWindows(2)
				parameters.Strategy.FailureGate = &fleet.FailureGate{Failures: 1}
				conductor := f.start(environment.KindUpgradeCluster, parameters)

				f.advance(conductor)

				now := f.clock.Now()
				works := storagetest.Claim(f, f.operations, process.Claim{Owner: "test", Limit: 100, Now: now, Until: now.Add(time.Minute)}, environment.KindUpgradeCluster)
				end := func(id string, problem process.Problem) {
					record := works[slices.IndexFunc(works, func(work process.Claimed) bool { return work.Record.InstanceID == id })].Record
					record.State, record.FinishedAt, record.Problem = process.Failed, now, problem

					if _, err := f.operations.Save(f.Context(), process.Progress{Record: record, Release: true, Now: now}); err != nil {
						t.Fatal(err)
					}
				}

				end("fails", process.Problem{Message: "no capacity", Reason: "ERR_QUOTA"})
				f.advance(conductor)

				if got, _ := f.get(f.id); got.State != environment.OrchestrationGated {
					t.Fatalf("the orchestration is %s", got.State)
				}

				end("late", process.Problem{Message: "too late", Reason: failure.ReasonNotStarted})

				if err := act(f); err != nil {
					t.Fatal(err)
				}

				if got := f.targets()["late"]; !strings.HasPrefix(got, "pending: The upgrade did not start") {
					t.Errorf("the target whose upgrade did not start is %s", got)
				}
			})
		})
	}
}
