package crashtest

import (
	"fmt"
	"slices"

	"github.com/environment-broker/environment-broker/process"
)

func (m *model) note(format string, args ...any) {
	m.problems = append(m.problems, fmt.Sprintf(format, args...))
}

// follows reports whether an operation can change from the first state to the second.
func follows(before, now process.State) bool {
	switch before {
	case process.Pending:
		return true
	case process.InProgress:
		return now != process.Pending
	case process.Canceling:
		return now == process.Canceling || now == process.Canceled
	default:
		return now == before
	}
}

// check checks the rules that always apply, by comparing the operations with their states at the previous check. It reads all
// operations at once, because the engines continue to run.
func (m *model) check() {
	active, records := map[string]string{}, m.all()

	for _, id := range m.accepted {
		now := records[id]
		before, existed := m.before[id]
		m.before[id] = now

		if existed && !follows(before.State, now.State) {
			m.note("%s changed from %s to %s", id, before.State, now.State)
		}

		if existed && before.State.Terminal() && (!now.FinishedAt.Equal(before.FinishedAt) || !slices.Equal(now.FinishedStages, before.FinishedStages)) {
			m.note("%s changed after its end: %+v, %+v", id, before, now)
		}

		if existed && (len(now.FinishedStages) < len(before.FinishedStages) || now.Lease.Fence < before.Lease.Fence) {
			m.note("%s lost progress: %+v, %+v", id, before, now)
		}

		if now.State == process.InProgress || now.State == process.Canceling {
			if other, taken := active[now.InstanceID]; taken {
				m.note("%s and %s of one instance are active", other, id)
			}

			active[now.InstanceID] = id
		}
	}
}

// finally checks the rules that apply once all operations have ended.
func (m *model) finally() {
	last := map[string]process.Record{}

	for _, id := range m.accepted {
		now := m.get(id)
		m.problems = append(m.problems, m.violations(id)...)

		if m.canceled[id] != (now.State == process.Canceled) {
			m.note("%s is %s; cancellation requested: %t", id, now.State, m.canceled[id])
		}

		if now.State == process.Failed && !m.failed[id] {
			m.note("%s failed without a reason: %+v", id, now.Problem)
		}

		for _, stage := range now.FinishedStages {
			for _, step := range map[string][]string{"one": {"A", "B"}, "two": {"C"}, "three": {"D", "E"}}[stage] {
				if !m.done[id][step] {
					m.note("%s has finished stage %s without step %s", id, stage, step)
				}
			}
		}

		for _, stage := range m.kept[id] {
			if ran := m.monitor.of(id).ran[stage]; len(ran) > 0 {
				m.note("%s is a retry, but repeated %v of the finished stage %s", id, ran, stage)
			}
		}

		if want := map[string]int{firstKind: 3, secondKind: 2}[now.Kind]; now.State == process.Succeeded && len(now.FinishedStages) != want {
			m.note("%s succeeded with the stages %v", id, now.FinishedStages)
		}

		if before, earlier := last[now.InstanceID]; earlier && !now.StartedAt.IsZero() && now.StartedAt.Before(before.FinishedAt) {
			m.note("%s started before %s of its instance had ended", id, before.ID)
		}

		if !now.StartedAt.IsZero() {
			last[now.InstanceID] = now
		}
	}

	m.problems = append(m.problems, m.monitor.violations...)
}
