package orchestration_test

import (
	"slices"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/environment-broker/environment-broker/internal/environment"
	"github.com/environment-broker/environment-broker/internal/environment/fleet"
	"github.com/environment-broker/environment-broker/internal/failure"
	"github.com/environment-broker/environment-broker/process"
)

// modelPolicy has the windows that modelWindow returns.
const modelPolicy = `{rules: [{match: {region: region-0}, timeBegin: "04:00", timeEnd: "05:00", timeZone: UTC}],
	default: {timeBegin: "22:00", timeEnd: "02:00", timeZone: UTC}}`

// modelWindow returns the hours at which the window of a region begins and ends, which can be after midnight.
func modelWindow(region string) (begin, end int) {
	if region == "region-0" {
		return 4, 5
	}

	return 22, 26
}

// addTimes draws the kind of the upgrades, and whether they have windows and a deadline.
func (m *modeled) addTimes(t *rapid.T, parameters *fleet.Parameters) {
	m.want.kind = rapid.SampledFrom([]string{environment.KindUpgradeCluster, environment.KindUpgradeKyma}).Draw(t, "kind")
	m.want.ordered, m.want.past = m.clock.Now(), map[string]int{}
	m.want.windows = rapid.Bool().Draw(t, "maintenance windows")
	parameters.Strategy.MaintenanceWindow = m.want.windows

	if hours := rapid.SampledFrom([]int{0, 15, 60}).Draw(t, "hours until the deadline"); hours > 0 {
		m.want.deadline = m.want.ordered.Add(time.Duration(hours) * time.Hour)
		parameters.Strategy.Deadline = m.want.deadline
	}

	if m.want.kind == environment.KindUpgradeKyma {
		parameters.Kyma = &fleet.Kyma{Version: "2.0.0"}
	}
}

// late reports whether the deadline has passed.
func (m *model) late() bool { return !m.deadline.IsZero() && !m.now.Before(m.deadline) }

// due reports whether the upgrade may start.
func (t *modelTarget) due(now time.Time) bool {
	return !t.notBefore.After(now) && (t.notAfter.IsZero() || t.notAfter.After(now))
}

// enterWindow makes a target wait for the rest of the current window, or for the next one.
func (t *modelTarget) enterWindow(now time.Time) {
	first, last := modelWindow(t.region)
	midnight := now.UTC().Truncate(24 * time.Hour)

	for day := -1; ; day++ {
		date := midnight.AddDate(0, 0, day)
		begin, end := date.Add(time.Duration(first)*time.Hour), date.Add(time.Duration(last)*time.Hour)

		if end.After(now) {
			t.notBefore, t.notAfter = begin, end
			if begin.Before(now) {
				t.notBefore = now
			}

			return
		}
	}
}

// plan makes the target wait for its start, which is not before the time of the order.
func (m *model) plan(target *modelTarget) {
	target.state, target.notBefore = "pending", m.ordered
	if !m.windows {
		return
	}

	target.enterWindow(m.ordered)

	if !m.deadline.IsZero() && !target.notBefore.Before(m.deadline) {
		target.state = "left out"
	}
}

// waitAgain makes a target wait for its start after a retry. The next run of the conductor chooses its window.
func (m *model) waitAgain(target *modelTarget) {
	target.notBefore, target.notAfter = m.now, time.Time{}
	if m.windows {
		target.notAfter = m.now.Add(-time.Second)
	}
}

// schedule moves targets whose windows have ended to the next ones, and cancels those that cannot start before the deadline.
func (m *model) schedule() {
	if m.late() {
		for _, target := range m.in("pending", "retrying") {
			target.state = "canceled"
		}

		return
	}

	moved := false

	for _, target := range m.in("pending", "retrying") {
		if !target.notAfter.IsZero() && !target.notAfter.After(m.now) {
			target.enterWindow(m.now)

			moved = true
		}
	}

	for _, target := range m.in("pending", "retrying") {
		if moved && !m.deadline.IsZero() && !target.notBefore.Before(m.deadline) {
			target.state = "canceled"
		}
	}
}

// repeatUnstarted makes targets pending again whose upgrades have not started in time.
func (m *model) repeatUnstarted() {
	for _, target := range m.in("failed") {
		if target.unstarted {
			target.unstarted, target.state = false, "pending"
			target.repeats++

			if target.retries > 0 {
				target.state = "retrying"
			}
		}
	}
}

// startTooLate makes an upgrade fail because no replica has started it in its window. Without windows and deadline, this is an
// ordinary failure.
func (m *modeled) startTooLate(t *rapid.T) {
	target := m.pick(t, func(target *modelTarget) bool { return target.state == "in progress" })

	record := m.operation(t, m.upgrades, m.want.kind, target.id)
	record.Problem = process.Problem{Message: "too late", Reason: failure.ReasonNotStarted}
	m.save(t, record, process.Failed)

	target.state, target.unstarted = "failed", m.want.windows || !m.want.deadline.IsZero()
}

// chooseTime lets the owner of an instance choose when its upgrade starts.
func (m *modeled) chooseTime(t *rapid.T) {
	target := m.pick(t, func(target *modelTarget) bool {
		return slices.Contains([]string{"pending", "retrying"}, target.state) || rapid.Bool().Draw(t, "of any target")
	})
	at := m.want.now.Add(time.Duration(rapid.IntRange(-30, 2000).Draw(t, "minutes")) * time.Minute)
	err := m.ChooseTime(m.Context(), target.id, at)

	waits := slices.Contains([]string{"pending", "retrying"}, target.state) && !m.want.ended() &&
		!slices.Contains([]string{"planned", "canceling"}, m.want.state) && !m.want.deadline.IsZero()

	switch {
	case !waits:
		if !failure.Is(err, failure.Conflict) {
			t.Fatalf("a time for %s, whose upgrade does not wait: %v", target.id, err)
		}
	case at.Before(m.want.now), !at.Before(m.want.deadline):
		if !failure.Is(err, failure.Invalid) {
			t.Fatalf("the time %s at %s with the deadline %s: %v", at, m.want.now, m.want.deadline, err)
		}
	case err != nil:
		t.Fatal(err)
	default:
		target.chosen, target.chosenAt, target.notBefore, target.notAfter = true, at, at, time.Time{}
	}
}

// passUntilDue lets the time pass until a target can start or the next wave begins, unless an upgrade runs.
func (m *modeled) passUntilDue() {
	waiting := m.want.in("pending", "retrying")
	if len(m.want.in("in progress")) > 0 || len(waiting) == 0 {
		return
	}

	first := waiting[0].notBefore
	for _, target := range waiting {
		if target.notBefore.Before(first) {
			first = target.notBefore
		}
	}

	if first.After(m.want.now) {
		m.pass(first.Sub(m.want.now))
	}
}

// checkNext checks that the next run of the conductor is not later than the start of a target for which there is room.
func (m *modeled) checkNext(t *rapid.T, next time.Time) {
	if m.want.stopped() || m.want.state == "canceling" || len(m.want.in("in progress")) > 0 {
		return // a resumption or the end of an upgrade makes the conductor due
	}

	for _, target := range m.want.in("pending", "retrying") {
		if target.wave <= m.want.wave && (next.IsZero() || next.After(target.notBefore) && next.After(m.want.now)) {
			t.Fatalf("the next run is at %s, but %s can start at %s", next, target.id, target.notBefore)
		}
	}
}

// compareTimes compares when the pending targets may start.
func (m *modeled) compareTimes(t *rapid.T) {
	type times struct{ NotBefore, NotAfter, ChosenAt time.Time }

	pending, err := m.Conductor.Orchestrations.Pending(m.Context(), m.db.Reader(), m.id)
	if err != nil {
		t.Fatal(err)
	}

	want, got := map[string]times{}, map[string]times{}

	// Ended windows are equal: the next run of the conductor replaces them.
	limit := func(notAfter time.Time) time.Time {
		if !notAfter.IsZero() && !notAfter.After(m.want.now) {
			return m.want.now
		}

		return notAfter
	}

	for _, target := range pending {
		got[target.InstanceID] = times{target.NotBefore, limit(target.NotAfter), target.ChosenAt}
	}

	for _, target := range m.want.in("pending", "retrying") {
		want[target.id] = times{target.notBefore, limit(target.notAfter), time.Time{}}
		if target.chosen {
			want[target.id] = times{target.notBefore, time.Time{}, target.chosenAt}
		}
	}

	if diff := gocmp.Diff(want, got); diff != "" {
		t.Fatalf("times of targets -want +got\n%s", diff)
	}
}
