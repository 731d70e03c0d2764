package orchestration_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/environment-broker/environment-broker/internal/environment"
	"github.com/environment-broker/environment-broker/internal/environment/fleet"
	"github.com/environment-broker/environment-broker/internal/failure"
	"github.com/environment-broker/environment-broker/process"
	"github.com/environment-broker/environment-broker/storage"
	"github.com/environment-broker/environment-broker/storage/auditlog"
)

// TestOwnerTimes runs an orchestration with windows, two waves and a deadline. The owner of a canary chooses a time outside of its window:
// its upgrade starts then, and the second wave does not wait for it.
func TestOwnerTimes(t *testing.T) {
	eachDatabase(t, func(f *stepped) {
		f.setPolicy(`{default: {timeBegin: "04:00", timeEnd: "05:00", timeZone: UTC}}`)

		for _, id := range []string{"chosen", "other"} {
			f.create(id, environment.KindProvision, process.Succeeded, func(*environment.Instance) {})
		}

		f.tx(func(tx storage.Tx) error {
			return f.Conductor.Planner.Upgrader.Instances.SetLabels(t.Context(), tx, "chosen", map[string]string{"ring": "canary"})
		})

		parameters := inWindows(5)
		parameters.Strategy.Waves = []fleet.Wave{{Labels: "ring=canary"}}
		parameters.Strategy.Deadline = began.Add(48 * time.Hour)
		conductor := f.start(environment.KindUpgradeCluster, parameters)

		at := began.Add(30 * time.Hour).Truncate(time.Hour) // 09:00 on the next day

		if err := f.ChooseTime(t.Context(), "chosen", at); err != nil {
			t.Fatal(err)
		}

		for range 3 * 24 * 6 {
			f.pass(10 * time.Minute)

			if f.advance(conductor).Done {
				break
			}

			f.endUpgrades(0)
		}

		started := f.startTimes()
		if got := started["chosen"]; len(got) != 1 || got[0].Before(at) || got[0].After(at.Add(10*time.Minute)) {
			t.Errorf("the upgrade of the chosen instance started at %v, want %s", got, at)
		}

		if got := started["other"]; len(got) != 1 || got[0].UTC().Hour() != 4 || !got[0].Before(began.Add(3*time.Hour)) {
			t.Errorf("the upgrade of the second wave started at %v, want its first window", got)
		}

		entries, err := f.entries.List(t.Context(), auditlog.Filter{Limit: 10, InstanceID: "chosen"})
		if err != nil || len(entries) != 2 || entries[1].Action != auditlog.ActionUpdate {
			t.Errorf("the audit log has %+v, %v", entries, err)
		}
	})
}

// TestOwnerTimeWhileSoaking starts the upgrade of a canary at the time of its owner, while the other canary soaks. The soak time does
// not begin again.
func TestOwnerTimeWhileSoaking(t *testing.T) {
	eachDatabase(t, func(f *stepped) {
		for _, id := range []string{"chosen", "canary", "rest"} {
			f.create(id, environment.KindProvision, process.Succeeded, func(*environment.Instance) {})
		}

		f.tx(func(tx storage.Tx) error {
			canary := map[string]string{"ring": "canary"}

			return errors.Join(
				f.Conductor.Planner.Upgrader.Instances.SetLabels(t.Context(), tx, "chosen", canary),
				f.Conductor.Planner.Upgrader.Instances.SetLabels(t.Context(), tx, "canary", canary),
			)
		})

		parameters := waves(5, nil, fleet.Wave{Labels: "ring=canary", Soak: "1h"})
		parameters.Strategy.Deadline = began.Add(48 * time.Hour)
		conductor := f.start(environment.KindUpgradeCluster, parameters)

		if err := f.ChooseTime(t.Context(), "chosen", began.Add(30*time.Minute)); err != nil {
			t.Fatal(err)
		}

		f.advance(conductor)
		f.endUpgrades(0)
		f.advance(conductor)
		f.pass(30 * time.Minute)

		for range 2 {
			f.advance(conductor)
			f.wantStats("the time of the owner has come", map[string]int{"succeeded": 1, "in progress": 1, "pending": 1})
		}

		if got, _ := f.get(f.id); !got.SoakUntil.Equal(began.Add(time.Hour)) {
			t.Errorf("soaks until %s", got.SoakUntil)
		}

		f.pass(30 * time.Minute)
		f.advance(conductor)
		f.wantStats("the first wave has soaked", map[string]int{"succeeded": 1, "in progress": 2})
	})
}

// TestOwnerTimesAreRefused chooses times that the orchestration cannot respect. Each attempt must fail and change nothing.
func TestOwnerTimesAreRefused(t *testing.T) {
	eachDatabase(t, func(f *stepped) {
		for _, id := range []string{"waits", "runs", "no deadline"} {
			f.create(id, environment.KindProvision, process.Succeeded, func(*environment.Instance) {})
		}

		without := all(1)
		without.Targets.Include = []fleet.Target{{InstanceID: "no deadline"}}
		f.start(environment.KindUpgradeCluster, without)

		parameters := all(1)
		parameters.Targets.Exclude = []fleet.Target{{InstanceID: "no deadline"}}
		parameters.Strategy.ScheduleTime, parameters.Strategy.Deadline = began.Add(time.Hour), began.Add(5*time.Hour)
		f.start(environment.KindUpgradeCluster, parameters)

		for _, c := range []struct {
			reason, instance string
			at               time.Duration
			kind             failure.Kind
			text             string
		}{
			{"the past", "waits", -time.Second, failure.Invalid, "in the past"},
			{"the deadline", "waits", 5 * time.Hour, failure.Invalid, "must be before its deadline, 2030-01-02T08:04:05Z"},
			{"before the start", "waits", time.Minute, failure.Invalid, "cannot start before 2030-01-02T04:04:05Z"},
			{"no deadline", "no deadline", 2 * time.Hour, failure.Conflict, "no pending upgrade with a deadline"},
			{"no upgrade", "x", 2 * time.Hour, failure.Conflict, "no pending upgrade with a deadline"},
		} {
			err := f.ChooseTime(t.Context(), c.instance, began.Add(c.at))
			if !failure.Is(err, c.kind) || !strings.Contains(failure.Of(err).Text, c.text) {
				t.Errorf("%s: %v", c.reason, err)
			}
		}

		pending, err := f.Conductor.Orchestrations.Pending(t.Context(), f.db.Reader(), f.id)
		if err != nil || len(pending) != 2 || !pending[0].ChosenAt.IsZero() || !pending[1].ChosenAt.IsZero() {
			t.Errorf("after refusals: %+v, %v", pending, err)
		}

		if err := f.ChooseTime(t.Context(), "waits", began.Add(2*time.Hour)); err != nil {
			t.Fatal(err)
		}

		if err := f.ChooseTime(t.Context(), "waits", began.Add(3*time.Hour)); err != nil {
			t.Errorf("another choice: %v", err)
		}

		if err := f.Cancel(t.Context(), f.id); err != nil {
			t.Fatal(err)
		}

		if err := f.ChooseTime(t.Context(), "waits", began.Add(3*time.Hour)); !failure.Is(err, failure.Conflict) {
			t.Errorf("while the orchestration is being canceled: %v", err)
		}
	})
}
