package orchestration_test

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/environment-broker/environment-broker/broker/orchestration"
	"github.com/environment-broker/environment-broker/internal/environment"
	"github.com/environment-broker/environment-broker/internal/environment/fleet"
	"github.com/environment-broker/environment-broker/internal/failure"
	"github.com/environment-broker/environment-broker/process"
	"github.com/environment-broker/environment-broker/storage"
	"github.com/environment-broker/environment-broker/storage/storagetest"
)

// modelTarget is an instance in the model. state is its state in lists of targets, or empty before the target is planned.
type modelTarget struct {
	id, region, state string
	// notBefore and notAfter are the times between which the upgrade may start. A zero notAfter is no limit.
	notBefore, notAfter time.Time
	// chosen reports that the owner has chosen notBefore. unstarted reports that the upgrade failed because it did not start in time, so
	// it is repeated.
	chosen, unstarted bool
	chosenAt          time.Time
	busy, deleted     bool
	// wave is the wave of the order. accepted reports that the failure no longer counts.
	wave     int
	accepted bool
	// upgrades is the number of upgrades that were ordered. repeats is the number of those that did not start in time.
	upgrades, retries, repeats int
}

// model is an orchestration without a database: the expected state of the orchestration and of each target.
type model struct {
	state     string
	conducted bool
	// done reports that the conductor has seen the end of all targets.
	done             bool
	planned          bool
	workers, regions int
	// gate is the number of failures that stops the orchestration, or 0.
	gate    int
	wave    int
	soak    time.Time
	targets []*modelTarget
	now     time.Time

	kind              string
	ordered, deadline time.Time
	// windows reports that upgrades start in maintenance windows only, and isUndo that they are rollbacks.
	windows, isUndo bool
	// past is the number of upgrades of earlier orchestrations, by instance.
	past map[string]int
}

// modelSoak is the soak time of the first wave.
const modelSoak = 5 * time.Minute

func (m *model) stopped() bool { return m.state == "paused" || m.state == "gated" }

// begun counts the targets that meet the condition, in the waves that have begun.
func (m *model) begun(condition func(*modelTarget) bool) (found int) {
	for _, target := range m.targets {
		if target.wave <= m.wave && condition(target) {
			found++
		}
	}

	return found
}

func (m *model) ended() bool {
	return slices.Contains([]string{"succeeded", "failed", "canceled"}, m.state)
}

// in returns the targets in the given states.
func (m *model) in(states ...string) []*modelTarget {
	var found []*modelTarget

	for _, target := range m.targets {
		if slices.Contains(states, target.state) {
			found = append(found, target)
		}
	}

	return found
}

func (m *model) unfinished() int { return len(m.in("pending", "retrying", "in progress")) }

// run models a run of the conductor.
func (m *model) run() {
	m.repeatUnstarted()

	if m.state == "canceling" {
		for _, target := range m.in("pending", "retrying") {
			target.state = "canceled"
		}
	} else {
		if !m.planned {
			for _, target := range m.targets {
				if !target.deleted {
					m.plan(target)
				}
			}

			m.planned = true
		}

		m.schedule()
		m.advance()
	}

	m.done = m.unfinished() == 0
}

// advance stops the orchestration, or begins the next wave and starts targets.
func (m *model) advance() {
	if m.stopped() {
		return
	}

	m.state = "in progress"
	failed := m.begun(func(target *modelTarget) bool { return target.state == "failed" && !target.accepted })

	if waiting := m.in("pending", "retrying"); m.gate > 0 && len(waiting) > 0 && failed >= m.gate {
		m.state = "gated"

		return
	}

	m.enterWave()
	m.start()
}

// enterWave begins the second wave after the first one has soaked. A wave without an upgrade does not soak.
func (m *model) enterWave() {
	if !slices.ContainsFunc(m.in("pending", "retrying"), func(target *modelTarget) bool { return target.wave > m.wave }) {
		return
	}

	upgraded := m.begun(func(target *modelTarget) bool { return target.state == "succeeded" || target.state == "failed" })

	switch {
	case m.begun(func(target *modelTarget) bool {
		return !target.chosen && slices.Contains([]string{"pending", "retrying", "in progress"}, target.state)
	}) > 0:
		m.soak = time.Time{}
	case m.soak.IsZero() && upgraded == 0:
		m.soak = m.now
	case m.soak.IsZero():
		m.soak = m.now.Add(modelSoak)
	}

	if !m.soak.IsZero() && !m.soak.After(m.now) {
		m.wave, m.soak = 2, time.Time{}
	}
}

// start starts the targets that are due, the earliest first, while there is room.
func (m *model) start() {
	waiting := slices.DeleteFunc(m.in("pending", "retrying"), func(target *modelTarget) bool { return target.wave > m.wave })
	slices.SortStableFunc(waiting, func(a, b *modelTarget) int {
		return cmp.Or(a.wave-b.wave, a.notBefore.Compare(b.notBefore))
	})

	for _, target := range waiting {
		running := m.in("in progress")
		near := slices.DeleteFunc(slices.Clone(running), func(other *modelTarget) bool { return other.region != target.region })

		switch {
		case !target.due(m.now) || len(running) >= m.workers || m.regions > 0 && len(near) >= m.regions:
		case target.deleted:
			target.state = "canceled"
		case target.busy:
			target.notBefore = m.now.Add(time.Minute)
		default:
			target.state = "in progress"
			target.upgrades++
		}
	}
}

func (m *model) end() {
	m.conducted = false

	switch {
	case m.state == "canceling":
		m.state = "canceled"
	case len(m.in("failed")) > 0:
		m.state = "failed"
	default:
		m.state = "succeeded"
	}
}

func (m *model) retry() {
	if !m.ended() {
		m.repeatUnstarted()
	}

	failed := m.in("failed")
	for _, target := range failed {
		target.state, target.accepted, target.chosen, target.unstarted = "retrying", false, false, false
		target.retries++
		m.waitAgain(target)
	}

	switch {
	case len(failed) > 0 && m.ended():
		m.state, m.conducted = "retrying", true
	case len(failed) > 0 || !m.ended():
		m.conducted = true
	case m.state == "failed" && len(m.stats()) == 0: // planned again
		m.state, m.conducted, m.planned = "pending", true, false
	case m.state == "failed" && m.unfinished() > 0:
		m.state, m.conducted = "retrying", true
	}
}

func (m *model) abandon() {
	switch {
	case m.conducted || m.ended() || m.state == "planned":
	case m.state == "canceling":
		m.state = "canceled"

		for _, target := range m.in("pending", "retrying") {
			target.state = "canceled"
		}
	default:
		m.state = "failed"
	}
}

func (m *model) stats() map[string]int {
	stats := map[string]int{}
	for _, target := range m.targets {
		if target.state != "" {
			stats[target.state]++
		}
	}

	return stats
}

// modeled is an orchestration with its model.
type modeled struct {
	*stepped

	want model
	// prefix is the prefix of the instance IDs.
	prefix string

	// upgrades and updates are the operations that run, by instance.
	upgrades, updates map[string]process.Record
}

// newModeled orders an orchestration, after it has removed the rows of the previous run. Operations are part of the audit log and
// cannot be removed, so it cancels them, and each run has other instances.
func newModeled(f *stepped, run int, t *rapid.T) *modeled {
	m := &modeled{stepped: f, prefix: fmt.Sprintf("run%d-", run), upgrades: map[string]process.Record{}, updates: map[string]process.Record{}}

	f.tx(func(tx storage.Tx) error {
		for _, statement := range []string{
			`DELETE FROM orchestration_targets`, `DELETE FROM orchestrations`, `DELETE FROM instances`,
			`UPDATE operations SET state = 'canceled', finished_at = updated_at WHERE state IN ('pending', 'in progress')`,
		} {
			if _, err := storage.Exec(f.Context(), tx, statement); err != nil {
				return err
			}
		}

		return nil
	})

	for i := range rapid.IntRange(1, 6).Draw(t, "targets") {
		target := &modelTarget{id: fmt.Sprint(m.prefix, i), region: fmt.Sprintf("region-%d", i%2), wave: rapid.IntRange(1, 2).Draw(t, "wave")}
		m.want.targets = append(m.want.targets, target)
		f.create(target.id, environment.KindProvision, process.Succeeded, func(instance *environment.Instance) {
			instance.Region, instance.PlanID, instance.PlanName = target.region, planPreview, "preview"
			instance.Request.Cluster.Kyma = &environment.Kyma{Version: "1.0.0", Modules: []string{"eventing"}}
		})
		f.tx(func(tx storage.Tx) error {
			return f.Conductor.Planner.Upgrader.Instances.SetLabels(f.Context(), tx, target.id, map[string]string{"wave": strconv.Itoa(target.wave)})
		})
	}

	m.want.workers, m.want.regions = rapid.IntRange(1, 4).Draw(t, "workers"), rapid.IntRange(0, 2).Draw(t, "workers of a region")
	m.want.state, m.want.conducted, m.want.now, m.want.wave = "pending", true, f.clock.Now(), 1
	m.want.gate = rapid.IntRange(0, 2).Draw(t, "failure gate")

	parameters := all(m.want.workers)
	parameters.Strategy.Parallel = &fleet.Parallel{Workers: m.want.workers, WorkersPerRegion: m.want.regions}
	parameters.Strategy.Waves = []fleet.Wave{{Labels: "wave=1", Soak: modelSoak.String()}}

	if m.want.gate > 0 {
		parameters.Strategy.FailureGate = &fleet.FailureGate{Failures: m.want.gate}
	}

	m.addTimes(t, &parameters)

	order := f.Create
	if rapid.Bool().Draw(t, "plan first") {
		order = f.CreatePlan
		m.want.state, m.want.conducted, m.want.planned = "planned", false, true

		for _, target := range m.want.targets {
			m.want.plan(target)
		}
	}

	var err error
	if f.id, err = order(f.Context(), m.want.kind, parameters); err != nil {
		t.Fatal(err)
	}

	return m
}

// pick draws one of the targets that meet the condition.
func (m *modeled) pick(t *rapid.T, condition func(*modelTarget) bool) *modelTarget {
	found := slices.DeleteFunc(slices.Clone(m.want.targets), func(target *modelTarget) bool { return !condition(target) })
	if len(found) == 0 {
		t.Skip("no such target")
	}

	return rapid.SampledFrom(found).Draw(t, "target")
}

// operation claims the operations of the given kind and returns the one that belongs to the instance.
func (m *modeled) operation(t *rapid.T, running map[string]process.Record, kind, instanceID string) process.Record {
	now := m.clock.Now()
	for _, work := range storagetest.Claim(m, m.operations, process.Claim{Owner: "test", Limit: 100, Now: now, Until: now.Add(24 * time.Hour)}, kind) {
		running[work.Record.InstanceID] = work.Record
	}

	record, found := running[instanceID]
	if !found {
		t.Fatalf("instance %s has no operation of kind %s", instanceID, kind)
	}

	delete(running, instanceID)

	return record
}

func (m *modeled) save(t *rapid.T, record process.Record, state process.State) {
	record.State, record.FinishedAt = state, m.clock.Now()
	if _, err := m.operations.Save(m.Context(), process.Progress{Record: record, Release: true, Now: m.clock.Now()}); err != nil {
		t.Fatal(err)
	}
}

// conductor claims the conductor, whose previous lease has expired.
func (m *modeled) conductor(t *rapid.T) process.Record {
	if !m.want.conducted {
		t.Skip("nothing conducts the orchestration")
	}

	m.pass(2 * time.Minute)

	return m.claim()
}

func (m *modeled) pass(time time.Duration) {
	m.want.now = m.want.now.Add(time)
	m.clock.SetTime(m.want.now)
}

// actions returns the events that change both the model and the database.
func (m *modeled) actions() map[string]func(*rapid.T) {
	return map[string]func(*rapid.T){
		"":     m.compare,
		"run":  m.runConductor,
		"end":  m.endOrchestration,
		"time": func(*rapid.T) { m.pass(30 * time.Second) },
		"the upgrade ends": func(t *rapid.T) {
			target := m.pick(t, func(target *modelTarget) bool { return target.state == "in progress" })
			m.endUpgrade(t, target)
		},
		"the orchestration runs to its end": m.runToTheEnd,
		"the tenant updates": func(t *rapid.T) {
			target := m.pick(t, func(target *modelTarget) bool {
				return !target.busy && !target.deleted && target.state != "in progress"
			})
			m.accept(environment.KindUpdate, environment.Instance{ID: target.id}, process.Pending)
			target.busy = true
		},
		"the update ends": func(t *rapid.T) {
			target := m.pick(t, func(target *modelTarget) bool { return target.busy })
			m.save(t, m.operation(t, m.updates, environment.KindUpdate, target.id), process.Succeeded)
			target.busy = false
		},
		"the instance is deleted": func(t *rapid.T) {
			target := m.pick(t, func(target *modelTarget) bool { return !target.deleted && !target.busy })
			m.tx(func(tx storage.Tx) error {
				_, err := storage.Exec(m.Context(), tx, `DELETE FROM instances WHERE id = ?`, target.id)

				return err
			})

			target.deleted = true
		},
		"cancel": func(t *rapid.T) {
			if err := m.Cancel(m.Context(), m.id); err != nil {
				t.Fatal(err)
			}

			switch {
			case m.want.state == "planned":
				m.want.state = "canceled"

				for _, target := range m.want.in("pending") {
					target.state = "canceled"
				}
			case !m.want.ended() && m.want.state != "canceling":
				m.want.state, m.want.conducted = "canceling", true
			}
		},
		"hours pass": func(t *rapid.T) {
			m.pass(time.Duration(rapid.IntRange(20, 900).Draw(t, "minutes")) * time.Minute)
		},
		"the owner chooses a time":    m.chooseTime,
		"the upgrade starts too late": m.startTooLate,
		"undo":                        m.undo,

		"retry":  m.retryFailed,
		"apply":  m.applyPlan,
		"pause":  m.pause,
		"resume": m.resume,
		"the conductor fails": func(t *rapid.T) {
			m.save(t, m.conductor(t), process.Failed)
			m.want.conducted = false
		},
		"abandoned": func(t *rapid.T) {
			if _, err := m.EndAbandoned(m.Context()); err != nil {
				t.Fatal(err)
			}

			m.want.abandon()
		},
	}
}

func (m *modeled) endUpgrade(t *rapid.T, target *modelTarget) {
	state := rapid.SampledFrom([]process.State{process.Succeeded, process.Failed}).Draw(t, "state")

	record := m.operation(t, m.upgrades, m.want.kind, target.id)
	if state == process.Succeeded {
		m.setKyma(t, &record)
	}

	m.save(t, record, state)
	target.state = string(state)
}

// applyPlan applies the plan. Deleted instances are left out.
func (m *modeled) applyPlan(t *rapid.T) {
	_, err := m.Apply(m.Context(), m.id, false)

	if m.want.state != "planned" || m.want.late() || m.want.now.Sub(m.want.ordered) >= environment.PlanLifetime {
		if !failure.Is(err, failure.Conflict) {
			t.Fatalf("an application of what is %s: %v", m.want.state, err)
		}

		return
	}

	if err != nil {
		t.Fatal(err)
	}

	m.want.state, m.want.conducted = "in progress", true

	for _, target := range m.want.targets {
		if target.deleted && target.state == "pending" {
			target.state = "left out"
		}
	}
}

func (m *modeled) pause(t *rapid.T) {
	err := m.Pause(m.Context(), m.id)

	switch {
	case m.want.stopped():
		if err != nil {
			t.Fatal(err)
		}
	case m.want.state == "in progress" || m.want.state == "retrying":
		if err != nil {
			t.Fatal(err)
		}

		m.want.state = "paused"
	case !failure.Is(err, failure.Conflict):
		t.Fatalf("a pause of what is %s: %v", m.want.state, err)
	}
}

func (m *modeled) resume(t *rapid.T) {
	err := m.Resume(m.Context(), m.id)

	if m.want.ended() || m.want.state == "canceling" || m.want.state == "planned" {
		if !failure.Is(err, failure.Conflict) {
			t.Fatalf("a resumption of what is %s: %v", m.want.state, err)
		}

		return
	}

	if err != nil {
		t.Fatal(err)
	}

	if m.want.state == "gated" {
		m.want.repeatUnstarted()

		for _, target := range m.want.in("failed") {
			target.accepted = true
		}
	}

	if m.want.stopped() {
		m.want.state = "in progress"
	}
}

// runToTheEnd ends all operations and runs the conductor until it ends.
func (m *modeled) runToTheEnd(t *rapid.T) {
	for m.want.conducted {
		for _, target := range m.want.targets {
			if target.busy {
				m.save(t, m.operation(t, m.updates, environment.KindUpdate, target.id), process.Succeeded)
				target.busy = false
			}
		}

		if m.want.stopped() {
			m.resume(t)
		}

		m.passUntilDue()
		m.runConductor(t)

		for _, target := range m.want.in("in progress") {
			m.endUpgrade(t, target)
		}

		if m.want.done {
			m.endOrchestration(t)
		}
	}
}

func (m *modeled) runConductor(t *rapid.T) {
	conductor := m.conductor(t)
	if err := m.Plan(m.Context(), conductor); err != nil {
		t.Fatal(err)
	}

	progress, err := m.Advance(m.Context(), conductor)
	if err != nil {
		t.Fatal(err)
	}

	if m.want.run(); progress.Done != m.want.done {
		t.Fatalf("done is %t, want %t", progress.Done, m.want.done)
	}

	m.checkNext(t, progress.Next)

	if waiting := m.want.in("pending", "retrying"); len(m.want.in("in progress")) == 0 && len(waiting) > 0 && progress.Next.IsZero() && !m.want.stopped() {
		t.Fatal("nothing makes the conductor due")
	}
}

// endOrchestration ends the conductor. Its end must fail if targets have become pending since the conductor saw the end of all.
func (m *modeled) endOrchestration(t *rapid.T) {
	if !m.want.done {
		t.Skip("targets are unfinished")
	}

	err := m.finish(m.conductor(t))

	if m.want.unfinished() > 0 {
		if !failure.Is(err, failure.Transient) {
			t.Fatalf("the end with pending targets: %v", err)
		}

		return
	}

	if err != nil {
		t.Fatal(err)
	}

	m.want.end()
}

func (m *modeled) retryFailed(t *rapid.T) {
	_, err := m.Retry(m.Context(), m.id, orchestration.Retry{})

	late := m.want.late() && len(m.want.in("failed")) > 0
	empty := m.want.state == "canceled" && len(m.want.targets) == len(m.want.in("", "canceled", "left out"))

	if m.want.state == "canceling" || m.want.state == "planned" || late || empty {
		if !failure.Is(err, failure.Conflict) {
			t.Fatalf("a retry of what is %s, late: %t, without upgrades: %t: %v", m.want.state, late, empty, err)
		}

		return
	}

	if err != nil {
		t.Fatal(err)
	}

	m.want.retry()
}

// compare compares the model with the database.
func (m *modeled) compare(t *rapid.T) {
	orchestration, stats := m.get(m.id)
	if string(orchestration.State) != m.want.state {
		t.Fatalf("the state is %s, want %s: %s", orchestration.State, m.want.state, orchestration.Description)
	}

	if orchestration.Wave != m.want.wave || !orchestration.SoakUntil.Equal(m.want.soak) {
		t.Fatalf("wave %d, soaks until %s; want %d, %s", orchestration.Wave, orchestration.SoakUntil, m.want.wave, m.want.soak)
	}

	if diff := gocmp.Diff(m.want.stats(), stats, cmpopts.EquateEmpty()); diff != "" {
		t.Fatalf("targets -want +got\n%s", diff)
	}

	m.compareTimes(t)

	upgrades, err := storage.Select[struct {
		ID    string `db:"instance_id"`
		Count int    `db:"count"`
	}](m.Context(), m.db.Reader(), `SELECT instance_id, count(*) AS count FROM operations WHERE kind = ? AND instance_id LIKE ?
		GROUP BY instance_id`, m.want.kind, m.prefix+"%")
	if err != nil {
		t.Fatal(err)
	}

	want, got := maps.Clone(m.want.past), map[string]int{}

	for _, each := range upgrades {
		got[each.ID] = each.Count
	}

	for _, target := range m.want.targets {
		if target.upgrades > target.retries+target.repeats+1 {
			t.Fatalf("%s was upgraded %d times, retried %d times, and %d upgrades did not start", target.id, target.upgrades, target.retries, target.repeats)
		}

		want[target.id] += target.upgrades
	}

	maps.DeleteFunc(want, func(_ string, count int) bool { return count == 0 })

	if diff := gocmp.Diff(want, got); diff != "" {
		t.Fatalf("upgrades -want +got\n%s", diff)
	}

	conducted, err := m.Conductor.Orchestrations.HasConductor(m.Context(), m.db.Reader(), m.id)
	if err != nil || conducted != m.want.conducted {
		t.Fatalf("conducted is %t, want %t: %v", conducted, m.want.conducted, err)
	}
}

// TestModel compares orchestrations with a model, under random events: with and without maintenance windows, a deadline, times of owners and
// an undo.
func TestModel(t *testing.T) {
	eachDatabase(t, func(f *stepped) {
		f.setPolicy(modelPolicy)

		run := 0

		rapid.Check(f.T, func(t *rapid.T) {
			run++

			t.Repeat(newModeled(f, run, t).actions())
		})
	})
}
