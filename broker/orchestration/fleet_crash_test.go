package orchestration_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"k8s.io/utils/clock"

	"github.com/environment-broker/environment-broker/broker/orchestration"
	"github.com/environment-broker/environment-broker/internal/environment"
	"github.com/environment-broker/environment-broker/internal/environment/fleet"
	"github.com/environment-broker/environment-broker/internal/failure"
	"github.com/environment-broker/environment-broker/process/crashtest"
	"github.com/environment-broker/environment-broker/storage/storagetest"
	"github.com/environment-broker/environment-broker/test/harness"
)

// fleetPolicy has a window for each region of the fixture. %s is the end of the first one. Fake time begins at midnight.
const fleetPolicy = `{rules: [
	{match: {region: europe-west3}, timeBegin: "00:02", timeEnd: "%s", timeZone: UTC},
	{match: {region: us-east-1}, timeBegin: "00:05", timeEnd: "23:00", timeZone: UTC}],
	default: {timeBegin: "00:00", timeEnd: "00:00", timeZone: UTC}}`

// fleetWindows are the windows of fleetPolicy, as the time since midnight.
func fleetWindows(firstEnd string) map[string][2]time.Duration {
	end, _ := time.Parse("15:04", firstEnd)

	return map[string][2]time.Duration{
		"europe-west3": {2 * time.Minute, time.Duration(end.Hour()*60+end.Minute()) * time.Minute}, "us-east-1": {5 * time.Minute, 23 * time.Hour}, "eu-central-1": {0, 24 * time.Hour},
	}
}

// fleetLimits are the limits of a fleet: overall, in a region and at a provider. The first window of fleetPolicy ends at firstEnd.
type fleetLimits struct {
	all, region, provider int

	firstEnd string
	// ownerWithin is the maximum delay of an upgrade after the time that its owner has chosen, or 0 if the limits can delay it.
	ownerWithin time.Duration
}

// ownerTime is the time since midnight that an owner chooses, after the window of the instance and before its window on the next
// day.
const ownerTime = 90 * time.Minute

// fleetScenario is an orchestration with maintenance windows, a deadline and three waves, of which the first one soaks. An owner chooses a time
// outside of the window. The failure gate stops the orchestration after one failure; an operator resumes, pauses and resumes it, and retries
// the failed upgrade at the end. The broker's own upgrades run, with a simulated Provisioner.
func fleetScenario(targets int, limits fleetLimits) crashtest.Scenario[environment.Data] {
	return crashtest.Scenario[environment.Data]{
		Name: fmt.Sprintf("fleet of %d", targets), Kind: environment.KindOrchestrate,
		Expected: fmt.Sprintf(`afterwards:
  Description: %d succeeded
  State: succeeded
operations:
- orchestrate succeeded
- orchestrate succeeded
`, targets),
		Open: func(t *testing.T) crashtest.Env[environment.Data] {
			t.Helper()

			f := &simulated{fixture: newFixture(t, storagetest.SQLite(t), clock.RealClock{}), ready: map[string]time.Time{}, keys: map[string][]string{}}
			f.setPolicy(fmt.Sprintf(fleetPolicy, limits.firstEnd))
			f.fill(targets)

			var id string

			return crashtest.Env[environment.Data]{
				Store: f.operations, Processes: f.realProcesses, AnyData: true,
				Script: func(run *crashtest.Run[environment.Data]) []string {
					var conductors []string

					id, conductors = f.runFleet(run, limits)

					return conductors
				},
				Upstream: func() any {
					f.checkFleet(limits)

					got, _ := f.get(id)

					return map[string]any{"State": got.State, "Description": got.Description}
				},
			}
		},
	}
}

// runFleet orders the orchestration and acts as its operator.
func (s *simulated) runFleet(run *crashtest.Run[environment.Data], limits fleetLimits) (id string, conductors []string) {
	s.Helper()

	parameters := inWindows(limits.all)
	parameters.Strategy.Parallel.WorkersPerRegion, parameters.Strategy.Parallel.WorkersPerProvider = limits.region, limits.provider
	parameters.Strategy.Waves = []fleet.Wave{{Number: 2, Soak: "3m"}, {Percentage: 30}}
	parameters.Strategy.FailureGate = &fleet.FailureGate{Failures: 1}
	parameters.Strategy.Deadline = time.Now().Add(30 * 24 * time.Hour)

	run.InjectFaults()

	id, conductor := s.order(parameters)
	state := func(wanted environment.OrchestrationState, wave int) func() bool {
		return func() bool {
			got, _ := s.get(id)

			return got.State == wanted && got.Wave >= wave
		}
	}

	s.until(run, "the targets are planned", state(environment.OrchestrationInProgress, 1))

	pending, err := s.Conductor.Orchestrations.Pending(s.Context(), s.db.Reader(), id)
	if err != nil {
		s.Fatal(err)
	}

	// A target of the second wave fails, in a region with a long window.
	failing := pending[slices.IndexFunc(pending, func(target environment.Target) bool {
		return target.Wave == 2 && target.Region != "europe-west3"
	})].InstanceID
	s.setFailing(failing, true)
	s.chooseTime(pending)

	s.until(run, "the canaries have soaked", state(environment.OrchestrationInProgress, 2))

	if err := s.Pause(s.Context(), id); err != nil {
		s.Fatal(err)
	}

	before := len(s.allUpgrades())

	run.Sleep(3 * time.Minute)

	if after := len(s.allUpgrades()); after != before {
		s.Errorf("%d upgrades started while the orchestration was paused", after-before)
	}

	if err := s.Resume(s.Context(), id); err != nil {
		s.Fatal(err)
	}

	s.until(run, "the gate is closed", state(environment.OrchestrationGated, 2))

	if err := s.Resume(s.Context(), id); err != nil {
		s.Fatal(err)
	}

	s.await(run, id, conductor)

	if got, stats := s.get(id); got.State != environment.OrchestrationFailed || stats["failed"] != 1 {
		s.Errorf("before the retry: %s, %s", got.State, got.Description)
	}

	s.setFailing(failing, false)

	if retried, err := s.Retry(s.Context(), id, orchestration.Retry{}); err != nil || len(retried.Targets) != 1 {
		s.Fatalf("retried %+v, %v", retried, err)
	}

	second := s.conductorOf(id)
	s.await(run, id, second)

	return id, []string{conductor, second}
}

// chooseTime lets the owner of a target whose window has not begun choose a time.
func (s *simulated) chooseTime(pending []environment.Target) {
	s.Helper()

	s.chosen = pending[slices.IndexFunc(pending, func(target environment.Target) bool { return target.Region == "europe-west3" })].InstanceID
	s.chosenAt = time.Now().UTC().Truncate(24 * time.Hour).Add(ownerTime)

	if err := s.ChooseTime(s.Context(), s.chosen, s.chosenAt); err != nil {
		s.Fatal(err)
	}
}

// until waits until the condition holds, for at most three days: upgrades that do not fit into a short window follow on the next
// days.
func (s *simulated) until(run *crashtest.Run[environment.Data], condition string, holds func() bool) {
	s.Helper()

	for begin := time.Now(); !holds(); {
		passed := time.Since(begin)
		if passed > 3*24*time.Hour {
			s.Fatalf("after three days, this still does not hold: %s", condition)
		}

		run.Sleep(min(max(10*time.Second, passed/20), time.Hour)) //nolint:mnd // rarely on later days
	}
}

// await waits until the orchestration and its conductor have ended.
func (s *simulated) await(run *crashtest.Run[environment.Data], id, conductor string) {
	s.Helper()
	s.until(run, "the orchestration has ended", func() bool {
		got, _ := s.get(id)

		return got.State.Ended()
	})
	run.Await(conductor)
}

// checkFleet checks that each instance was upgraded once, and the failed one twice. No more upgrades may have run at once than
// allowed, and none outside its window, or before the time that its owner has chosen.
func (s *simulated) checkFleet(limits fleetLimits) {
	s.Helper()
	s.wantAtOnce(limits.all, limits.region, limits.provider)

	orders := map[string]int{}

	for _, upgrade := range s.allUpgrades() {
		if upgrade.Reason == failure.ReasonNotStarted {
			if _, ordered := s.ready[upgrade.ID]; ordered {
				s.Errorf("the upgrade %s of %s did not start in its window, but was ordered", upgrade.ID, upgrade.InstanceID)
			}

			continue
		}

		orders[upgrade.InstanceID]++

		window := fleetWindows(limits.firstEnd)[upgrade.Region]
		for _, at := range []time.Time{upgrade.CreatedAt.Time, upgrade.StartedAt.Time} {
			if upgrade.InstanceID == s.chosen {
				if at.Before(s.chosenAt) || limits.ownerWithin > 0 && at.Sub(s.chosenAt) > limits.ownerWithin {
					s.Errorf("the upgrade of %s started at %s, the chosen time was %s", s.chosen, at, s.chosenAt)
				}

				continue
			}

			if since := at.UTC().Sub(at.UTC().Truncate(24 * time.Hour)); since < window[0] || since >= window[1] {
				s.Errorf("the upgrade of %s in %s started at %s", upgrade.InstanceID, upgrade.Region, at)
			}
		}
	}

	twice := 0

	for instance, keys := range s.keys {
		if len(keys) != orders[instance] || len(keys) > 2 {
			s.Errorf("%s: %d upgrades of the broker, %d of the Provisioner", instance, orders[instance], len(keys))
		}

		twice += len(keys) - 1
	}

	if twice != 1 || len(orders) != len(s.keys) {
		s.Errorf("%d of %d instances were upgraded, %d of them twice; only the failed one may be", len(s.keys), len(orders), twice)
	}
}

// TestFleetCrashes kills, freezes and disconnects replicas at the writes and calls of an orchestration with waves, windows, a gate
// and a pause: at each of them with SOAK_DURATION, otherwise at some.
func TestFleetCrashes(t *testing.T) {
	t.Parallel()

	nth := 100
	if harness.SoakDuration(t) > 0 {
		nth = 1
	}

	crashtest.Sample(t, harness.Seed(t), nth, fleetScenario(crashTargets, fleetLimits{all: 6, region: 3, provider: 4, firstEnd: "00:50", ownerWithin: time.Hour}))
}

// TestFleetStorm injects faults at random writes and calls of a large orchestration: 10,000 targets with SOAK_DURATION, otherwise 300. Each
// fault kills or freezes a replica, which continues beside the one that replaces it, or loses a request or a response. The first window
// is too short for all its targets, which continue on the next day. TEST_SEED repeats the selection.
func TestFleetStorm(t *testing.T) {
	t.Parallel()

	targets, every, limits := 300, 60, fleetLimits{all: 40, region: 25, provider: 30, firstEnd: "00:12"}
	if harness.SoakDuration(t) > 0 {
		targets, every, limits = 10_000, 400, fleetLimits{all: 300, region: 200, provider: 250, firstEnd: "00:12"}
	}

	crashtest.Storm(t, harness.Seed(t), every, fleetScenario(targets, limits))
}
