package orchestration_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/environment-broker/environment-broker/broker/orchestration"
	"github.com/environment-broker/environment-broker/internal/environment"
	"github.com/environment-broker/environment-broker/internal/environment/fleet"
	"github.com/environment-broker/environment-broker/process"
	"github.com/environment-broker/environment-broker/storage/orchestrations"
)

// usual are durations of past operations.
type usual struct{ likely, late time.Duration }

func (u usual) Usual(string) (likely, late time.Duration) { return u.likely, u.late }

// TestForecast predicts the ends of orchestrations whose upgrades usually take ten minutes, and at most thirty.
func TestForecast(t *testing.T) {
	t.Parallel()

	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	past := usual{10 * time.Minute, 30 * time.Minute}
	after := func(percent int, likely, latest time.Duration) process.Forecast {
		return process.Forecast{Percent: percent, Likely: now.Add(likely), Latest: now.Add(latest)}
	}

	type stats = map[string]int

	cases := map[string]struct {
		reason  string
		change  func(*environment.Orchestration)
		waves   map[int]stats
		past    usual
		want    process.Forecast
		percent map[int]int
	}{
		"batches": {
			"100 upgrades, 10 at a time, take ten times as long as one",
			nil,
			map[int]stats{1: {"pending": 100}},
			past, after(0, 100*time.Minute, 300*time.Minute),
			map[int]int{1: 0},
		},
		"half done": {
			"a running upgrade counts as half, and targets that were left out do not count",
			nil,
			map[int]stats{1: {"succeeded": 40, "failed": 10, "in progress": 10, "pending": 40, "left out": 50}},
			past, after(55, 45*time.Minute, 135*time.Minute),
			map[int]int{1: 55},
		},
		"last ones": {
			"no upgrade is pending",
			nil,
			map[int]stats{1: {"succeeded": 8, "in progress": 2}},
			past, after(90, 5*time.Minute, 15*time.Minute),
			map[int]int{1: 90},
		},
		"one more": {
			"a pending upgrade takes its whole time, however many are allowed",
			nil,
			map[int]stats{1: {"succeeded": 8, "in progress": 1, "retrying": 1}},
			past, after(85, 10*time.Minute, 30*time.Minute),
			map[int]int{1: 85},
		},
		"waves": {
			"the waves run one after the other, and the first one soaks",
			func(o *environment.Orchestration) {
				o.Parameters.Strategy.Waves = []fleet.Wave{{Number: 10, Soak: "1h"}}
			},
			map[int]stats{1: {"pending": 10}, 2: {"pending": 20}},
			past, after(0, 90*time.Minute, 150*time.Minute),
			map[int]int{1: 0, 2: 0},
		},
		"soak": {
			"the first wave has ended, and soaks for another 15 minutes",
			func(o *environment.Orchestration) {
				o.Parameters.Strategy.Waves = []fleet.Wave{{Number: 10, Soak: "1h"}}
				o.SoakUntil = now.Add(15 * time.Minute)
			},
			map[int]stats{1: {"succeeded": 10}, 2: {"pending": 10}},
			past, after(50, 25*time.Minute, 45*time.Minute),
			map[int]int{1: 100, 2: 0},
		},
		"later": {
			"nothing starts for two hours",
			func(o *environment.Orchestration) { o.Parameters.Strategy.ScheduleTime = now.Add(2 * time.Hour) },
			map[int]stats{1: {"pending": 1}},
			past, after(0, 130*time.Minute, 150*time.Minute),
			map[int]int{1: 0},
		},
		"paused": {
			"nobody knows when it continues",
			func(o *environment.Orchestration) { o.State = environment.OrchestrationPaused },
			map[int]stats{1: {"succeeded": 1, "pending": 1}},
			past,
			process.Forecast{Percent: 50},
			map[int]int{1: 50},
		},
		"no past": {
			"no upgrade has succeeded yet",
			nil,
			map[int]stats{1: {"failed": 1, "pending": 1}},
			usual{},
			process.Forecast{Percent: 50},
			map[int]int{1: 50},
		},
		"about to end": {
			"an orchestration in progress never shows 100 %",
			nil,
			map[int]stats{1: {"succeeded": 3}},
			past,
			after(99, 0, 0),
			map[int]int{1: 100},
		},
		"ended": {
			"its waves keep their percentages",
			func(o *environment.Orchestration) { o.State = environment.OrchestrationSucceeded },
			map[int]stats{1: {"succeeded": 3}},
			past,
			process.Forecast{},
			map[int]int{1: 100},
		},
		"no targets": {"nothing is selected yet", nil, nil, past, process.Forecast{}, map[int]int{}},
	}

	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			shown := environment.Orchestration{State: environment.OrchestrationInProgress, Kind: environment.KindUpgradeKyma}
			shown.Parameters.Strategy.Parallel = &fleet.Parallel{Workers: 10}

			if c.change != nil {
				c.change(&shown)
			}

			want := orchestration.Forecast{Forecast: c.want, Waves: c.percent}
			if diff := cmp.Diff(want, orchestration.ForecastOf(shown, c.waves, nil, c.past, now)); diff != "" {
				t.Errorf("%s: -want +got\n%s", c.reason, diff)
			}
		})
	}
}

// TestForecastOfStarts predicts the ends of orchestrations with maintenance windows of 20 minutes, with times that owners have
// chosen, and with limits for regions and providers. The upgrades usually take ten minutes, and at most thirty, with two workers.
func TestForecastOfStarts(t *testing.T) {
	t.Parallel()

	const window = "daily 04:00:00-04:20:00 UTC"

	now := time.Date(2026, 1, 2, 3, 0, 0, 0, time.UTC)
	at := func(day, hour, minute int) time.Time { return time.Date(2026, 1, day, hour, minute, 0, 0, time.UTC) }
	inWindow := func(wave, count int) orchestrations.Start {
		return orchestrations.Start{Wave: wave, Window: window, NotBefore: at(2, 4, 0), NotAfter: at(2, 4, 20), Count: count}
	}
	in := func(provider, region string, count int) orchestrations.Start {
		return orchestrations.Start{Wave: 1, Provider: provider, Region: region, NotBefore: now, Count: count}
	}
	limits := func(ofRegions, ofProviders int) func(*fleet.Strategy) {
		return func(s *fleet.Strategy) {
			s.MaintenanceWindow = false
			s.Parallel = &fleet.Parallel{Workers: 10, WorkersPerRegion: ofRegions, WorkersPerProvider: ofProviders}
		}
	}
	busy := in("aws", "eu", 1)
	busy.Running = true

	cases := map[string]struct {
		reason         string
		change         func(*fleet.Strategy)
		starts         []orchestrations.Start
		likely, latest time.Time
	}{
		"one window": {
			"two batches of two fit, unless they are slow", nil, []orchestrations.Start{inWindow(1, 4)}, at(2, 4, 20), at(3, 4, 30),
		},
		"two windows": {
			"the fifth waits for the next day", nil, []orchestrations.Start{inWindow(1, 5)}, at(3, 4, 10), at(4, 4, 30),
		},
		"busy workers": {
			"running upgrades end first", nil, []orchestrations.Start{{Wave: 1, Running: true, Count: 2}}, at(2, 3, 5), at(2, 3, 15),
		},
		"waves": {
			"the second wave has missed the window of the first one, because of the soak time", func(s *fleet.Strategy) {
				s.Waves = []fleet.Wave{{Number: 1, Soak: "1h"}}
			}, []orchestrations.Start{inWindow(1, 1), inWindow(2, 1)}, at(3, 4, 10), at(3, 4, 30),
		},
		"deadline": {
			"upgrades that would start later are canceled", func(s *fleet.Strategy) { s.Deadline = at(3, 0, 0) },
			[]orchestrations.Start{inWindow(1, 5)},
			at(2, 4, 20), at(2, 4, 30),
		},
		"owner": {
			"the time of an owner does not delay the second wave", func(s *fleet.Strategy) { s.Waves, s.Deadline = []fleet.Wave{{Number: 1}}, at(9, 0, 0) },
			[]orchestrations.Start{{NotBefore: at(5, 12, 0), Count: 1}, inWindow(2, 1)},
			at(5, 12, 10), at(5, 12, 30),
		},
		"running at the time of an owner": {
			"no wave waits for it",
			func(s *fleet.Strategy) {
				s.MaintenanceWindow, s.Waves, s.Deadline = false, []fleet.Wave{{Number: 1, Soak: "2h"}}, at(9, 0, 0)
			},
			[]orchestrations.Start{{Running: true, NotBefore: at(2, 2, 55), Count: 1}, {Wave: 2, NotBefore: now, Count: 1}},
			at(2, 3, 10), at(2, 3, 30),
		},
		"worker of an owner": {
			"an upgrade at the time of its owner occupies a worker",
			func(s *fleet.Strategy) {
				s.MaintenanceWindow, s.Parallel, s.Deadline = false, &fleet.Parallel{Workers: 1}, at(9, 0, 0)
			},
			[]orchestrations.Start{{Running: true, NotBefore: at(2, 2, 55), Count: 1}, {Wave: 1, NotBefore: now, Count: 1}},
			at(2, 3, 15), at(2, 3, 45),
		},
		"only at the time of an owner": {
			"the orchestration waits for it", func(s *fleet.Strategy) { s.MaintenanceWindow, s.Deadline = false, at(9, 0, 0) },
			[]orchestrations.Start{{Running: true, NotBefore: at(2, 2, 55), Count: 1}},
			at(2, 3, 5), at(2, 3, 15),
		},
		"unreadable": {
			"a window that cannot be read has no next occurrence", nil,
			[]orchestrations.Start{{Wave: 1, Window: "x", NotBefore: at(1, 0, 0), NotAfter: at(1, 1, 0), Count: 1}},
			time.Time{},
			time.Time{},
		},
		"region": {
			"the upgrades of a region run one after the other", limits(1, 0),
			[]orchestrations.Start{in("aws", "eu", 6), in("aws", "us", 1)},
			at(2, 4, 0), at(2, 6, 0),
		},
		"provider": {
			"two upgrades of a provider run at once, in all of its regions", limits(0, 2),
			[]orchestrations.Start{in("aws", "eu", 3), in("aws", "us", 3), in("gcp", "eu", 1)},
			at(2, 3, 30), at(2, 4, 30),
		},
		"busy region": {
			"the running upgrade occupies the only worker of its region", limits(1, 0),
			[]orchestrations.Start{busy, in("aws", "eu", 1), in("aws", "us", 1)},
			at(2, 3, 15), at(2, 3, 45),
		},
	}

	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			shown := environment.Orchestration{State: environment.OrchestrationInProgress, Kind: environment.KindUpgradeKyma}
			shown.Parameters.Strategy = fleet.Strategy{Parallel: &fleet.Parallel{Workers: 2}, MaintenanceWindow: true}

			if c.change != nil {
				c.change(&shown.Parameters.Strategy)
			}

			waves := map[int]map[string]int{1: {"pending": 1}}

			got := orchestration.ForecastOf(shown, waves, c.starts, usual{10 * time.Minute, 30 * time.Minute}, now)
			if !got.Likely.Equal(c.likely) || !got.Latest.Equal(c.latest) {
				t.Errorf("%s: the end is %s to %s, want %s to %s", c.reason, got.Likely, got.Latest, c.likely, c.latest)
			}
		})
	}
}

// TestForecastBeforeADeadline checks that the latest end is not before the expected one, although fewer slow upgrades start before the
// deadline.
func TestForecastBeforeADeadline(t *testing.T) {
	t.Parallel()

	now := time.Date(2026, 1, 2, 3, 0, 0, 0, time.UTC)
	shown := environment.Orchestration{State: environment.OrchestrationInProgress, Kind: environment.KindUpgradeKyma}
	shown.Parameters.Strategy = fleet.Strategy{Parallel: &fleet.Parallel{Workers: 1}, Deadline: now.Add(25 * time.Minute)}

	got := orchestration.ForecastOf(shown, map[int]map[string]int{1: {"pending": 9}},
		[]orchestrations.Start{{Wave: 1, NotBefore: now, Count: 9}}, usual{10 * time.Minute, 25 * time.Minute}, now)
	if want := now.Add(30 * time.Minute); !got.Likely.Equal(want) || !got.Latest.Equal(want) {
		t.Errorf("the end is %s to %s, want %s", got.Likely, got.Latest, want)
	}
}
