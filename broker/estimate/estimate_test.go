package estimate_test

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/environment-broker/environment-broker/broker/estimate"
	"github.com/environment-broker/environment-broker/process"
	"github.com/environment-broker/environment-broker/storage"
	"github.com/environment-broker/environment-broker/storage/instances"
	"github.com/environment-broker/environment-broker/storage/operations"
)

var start = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// history has past operations. If err is set, it fails.
type history struct {
	durations []instances.Duration
	steps     map[string][]operations.StepTime
	err       error
	// read has the IDs whose steps were read.
	read []string
}

func (h *history) Durations(context.Context) ([]instances.Duration, error) { return h.durations, h.err }

func (h *history) StepTimes(_ context.Context, ids []string) ([]operations.StepTime, error) {
	h.read = append(h.read, ids...)

	var times []operations.StepTime
	for _, id := range ids {
		times = append(times, h.steps[id]...)
	}

	return times, h.err
}

// add adds an operation with the steps in the given order. steps contains the minutes that each of them takes.
func (h *history) add(kind, plan string, steps map[string]int, order ...string) {
	id := strconv.Itoa(len(h.durations))
	took := time.Duration(0)

	for _, step := range order {
		began := start.Add(took)
		took += time.Duration(steps[step]) * time.Minute

		if h.steps == nil {
			h.steps = map[string][]operations.StepTime{}
		}

		h.steps[id] = append(h.steps[id], operations.StepTime{OperationID: id, Step: step, BeganAt: storage.At(began), EndedAt: storage.At(start.Add(took))})
	}

	h.durations = append(h.durations, instances.Duration{OperationID: id, Kind: kind, PlanID: plan, Started: start, Took: took})
}

// addTotals adds operations whose timelines were removed.
func (h *history) addTotals(kind, plan string, minutes ...int) {
	for _, minute := range minutes {
		h.durations = append(h.durations, instances.Duration{
			OperationID: strconv.Itoa(len(h.durations)), Kind: kind, PlanID: plan, Started: start, Took: time.Duration(minute) * time.Minute,
		})
	}
}

func minutes(n int) time.Time { return start.Add(time.Duration(n) * time.Minute) }

func running(kind, step string, since int) process.Record {
	return process.Record{Kind: kind, State: process.InProgress, Step: step, StartedAt: start, StepSince: minutes(since)}
}

func refreshed(t *testing.T, h *history) *estimate.Estimator {
	t.Helper()

	estimator := estimate.New(h, h)
	if err := estimator.Refresh(t.Context()); err != nil {
		t.Fatal(err)
	}

	return estimator
}

// TestForecastByTotals compares with operations that have no timeline.
func TestForecastByTotals(t *testing.T) {
	t.Parallel()

	h := &history{}
	h.addTotals("provision", "aws", 5, 4, 90)
	h.addTotals("provision", "gcp", 8)
	h.addTotals("deprovision", "", 2)
	h.addTotals("update", "aws", slices.Repeat([]int{1}, 40)...)
	h.addTotals("update", "aws", slices.Repeat([]int{9}, 41)...)

	estimator := refreshed(t, h)

	cases := map[string]struct {
		reason         string
		kind, plan     string
		now            int // minutes after the start
		percent        int
		likely, latest int // minutes after the start, 0 for unknown
	}{
		"median":          {"half of the operations took at most 5 minutes", "provision", "aws", 0, 1, 5, 90},
		"longer":          {"only the operations that took as long say something about the end", "provision", "aws", 6, 99, 90, 90},
		"longer than all": {"no past operation took as long", "provision", "aws", 91, 99, 0, 0},
		"plan":            {"each plan has its own forecast", "provision", "gcp", 4, 50, 8, 8},
		"unknown plan":    {"the kind is the fallback", "provision", "new", 0, 1, 5, 90},
		"removed":         {"a removed instance no longer has a plan", "deprovision", "aws", 1, 50, 2, 2},
		"unknown kind":    {"no operation of the kind has succeeded", "resume", "aws", 0, 0, 0, 0},
		"newest counts":   {"the forecast follows the newest operations", "update", "aws", 0, 1, 1, 1},
	}

	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			want := process.Forecast{Percent: c.percent}
			if c.likely > 0 {
				want.Likely, want.Latest = minutes(c.likely), minutes(c.latest)
			}

			got := estimator.Forecast(running(c.kind, "Check_Runtime", 0), c.plan, minutes(c.now))
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("%s: -want +got\n%s", c.reason, diff)
			}
		})
	}
}

// TestForecastBySteps compares with operations at the same step.
func TestForecastBySteps(t *testing.T) {
	t.Parallel()

	h := &history{}
	order := []string{"Create", "Check", "Register"}
	h.add("provision", "aws", map[string]int{"Create": 1, "Check": 8, "Register": 1}, order...)
	h.add("provision", "aws", map[string]int{"Create": 1, "Check": 9, "Register": 2}, order...)
	h.add("provision", "aws", map[string]int{"Create": 1, "Check": 20, "Register": 1}, order...)

	estimator := refreshed(t, h)

	cases := map[string]struct {
		reason string
		record process.Record
		now    int
		want   process.Forecast
	}{
		"on time": {
			"half of the operations ended 11 minutes after the step began", running("provision", "Check", 1), 1,
			process.Forecast{Percent: 8, Likely: minutes(12), Latest: minutes(22)},
		},
		"began late": {
			"an earlier step took 20 minutes more, but what is left is the same", running("provision", "Check", 21), 21,
			process.Forecast{Percent: 8, Likely: minutes(32), Latest: minutes(42)},
		},
		"slow step": {
			"only one operation was in the step for 10 minutes", running("provision", "Check", 1), 11,
			process.Forecast{Percent: 83, Likely: minutes(22), Latest: minutes(22)},
		},
		"slower than all": {
			"the percentage stays at the end of the step", running("provision", "Check", 1), 60,
			process.Forecast{Percent: 90},
		},
		"last step": {
			"the last step takes one or two minutes", running("provision", "Register", 30), 30,
			process.Forecast{Percent: 90, Likely: minutes(31), Latest: minutes(32)},
		},
		"unknown step": {
			"no past operation had the step, so the total counts", running("provision", "New", 0), 6,
			process.Forecast{Percent: 50, Likely: minutes(12), Latest: minutes(22)},
		},
	}

	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			if diff := cmp.Diff(c.want, estimator.Forecast(c.record, "aws", minutes(c.now))); diff != "" {
				t.Errorf("%s: -want +got\n%s", c.reason, diff)
			}
		})
	}
}

// TestPercentNeverFalls moves an operation through its steps, slower than all past ones.
func TestPercentNeverFalls(t *testing.T) {
	t.Parallel()

	h := &history{}
	order := []string{"Create", "Check", "Register"}

	for extra := range 5 {
		h.add("provision", "aws", map[string]int{"Create": 1 + extra, "Check": 20 - 3*extra, "Register": 1}, order...)
	}

	estimator := refreshed(t, h)
	last := 0

	for now := range 90 {
		step := order[now/30]
		if percent := estimator.Forecast(running("provision", step, now/30*30), "aws", minutes(now)).Percent; percent < last {
			t.Errorf("minute %d: %d %% after %d %%", now, percent, last)
		} else {
			last = percent
		}
	}
}

func TestNoForecast(t *testing.T) {
	t.Parallel()

	h := &history{}
	h.addTotals("provision", "aws", 5)

	estimator := refreshed(t, h)
	pending, ended := running("provision", "", 0), running("provision", "", 0)
	pending.StartedAt, ended.State = time.Time{}, process.Failed

	var none *estimate.Estimator

	for name, got := range map[string]process.Forecast{
		"pending":      estimator.Forecast(pending, "aws", start),
		"ended":        estimator.Forecast(ended, "aws", start),
		"no estimator": none.Forecast(running("provision", "", 0), "aws", start),
		"no history":   estimate.New(h, h).Forecast(running("provision", "", 0), "aws", start),
	} {
		if got != (process.Forecast{}) {
			t.Errorf("%s: got %+v, want no forecast", name, got)
		}
	}

	if likely, late := none.Usual("provision"); likely != 0 || late != 0 {
		t.Errorf("no estimator: got durations of %s and %s", likely, late)
	}
}

func TestUsual(t *testing.T) {
	t.Parallel()

	h := &history{}
	h.addTotals("upgradeKyma", "aws", 5, 6)
	h.addTotals("upgradeKyma", "gcp", 30)

	if likely, late := refreshed(t, h).Usual("upgradeKyma"); likely != 6*time.Minute || late != 30*time.Minute {
		t.Errorf("got %s and %s, want 6m and 30m", likely, late)
	}
}

// TestRefresh checks that an error keeps the last forecasts, and that the steps of an operation are read once.
func TestRefresh(t *testing.T) {
	t.Parallel()

	h := &history{}
	h.addTotals("provision", "aws", 5, 6)

	estimator := refreshed(t, h)
	before := estimator.Forecast(running("provision", "", 0), "aws", start)

	h.err = errors.New("away")
	if err := estimator.Refresh(t.Context()); !errors.Is(err, h.err) {
		t.Errorf("got %v during an outage, want its error", err)
	}

	if after := estimator.Forecast(running("provision", "", 0), "aws", start); before.Percent == 0 || after != before {
		t.Errorf("forecast during an outage: got %+v, want %+v", after, before)
	}

	h.err = nil
	h.addTotals("provision", "aws", 7)

	if err := estimator.Refresh(t.Context()); err != nil {
		t.Fatal(err)
	}

	if slices.Sort(h.read); !slices.Equal(h.read, []string{"0", "1", "2"}) {
		t.Errorf("steps were read of %v, want each operation once", h.read)
	}
}
