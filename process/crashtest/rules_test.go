package crashtest

import (
	"fmt"
	"slices"

	"github.com/environment-broker/environment-broker/process"
	"github.com/environment-broker/environment-broker/storage"
)

func (m *model) note(format string, args ...any) {
	m.wrong = append(m.wrong, fmt.Sprintf(format, args...))
}

// follows are the states in which an operation may be found after having been in the first one.
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

// check looks at the rules that hold at any moment.
func (m *model) check() {
	active := map[string]string{}

	for _, now := range m.present() {
		id := now.ID
		before, known := m.before[id]
		m.before[id] = now

		if known && !follows(before.State, now.State) {
			m.note("%s was %s and is %s", id, before.State, now.State)
		}

		if known && before.State.Terminal() && (!now.FinishedAt.Equal(before.FinishedAt) || !slices.Equal(now.FinishedStages, before.FinishedStages)) {
			m.note("%s changed after its end: %+v, %+v", id, before, now)
		}

		if known && (len(now.FinishedStages) < len(before.FinishedStages) || now.Lease.Fence < before.Lease.Fence) {
			m.note("%s went back: %+v, %+v", id, before, now)
		}

		if now.State == process.InProgress || now.State == process.Canceling {
			if other, taken := active[now.InstanceID]; taken {
				m.note("%s and %s of one instance are active", other, id)
			}

			active[now.InstanceID] = id
		}
	}
}

// present reads what was accepted, all at one moment: meanwhile the engine has operations end, and the next one of the instance begin.
func (m *model) present() []process.Record {
	records := make([]process.Record, 0, len(m.accepted))

	m.inTx(func(tx storage.Tx) error {
		for _, id := range m.accepted {
			record, err := m.world.Store.Get(m.Context(), tx, id)
			if err != nil {
				return err
			}

			records = append(records, record)
		}

		return nil
	})

	return records
}

// finally looks at the rules that hold when all has come to an end.
func (m *model) finally() {
	last := map[string]process.Record{}

	for _, id := range m.accepted {
		now := m.get(id)
		m.wrong = append(m.wrong, m.judge(id)...)

		if m.canceled[id] != (now.State == process.Canceled) {
			m.note("%s is %s, it is %t that it was to be canceled", id, now.State, m.canceled[id])
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

		if want := map[string]int{firstKind: 3, secondKind: 2}[now.Kind]; now.State == process.Succeeded && len(now.FinishedStages) != want {
			m.note("%s succeeded with the stages %v", id, now.FinishedStages)
		}

		if before, earlier := last[now.InstanceID]; earlier && !now.StartedAt.IsZero() && now.StartedAt.Before(before.FinishedAt) {
			m.note("%s began before %s of its instance had ended", id, before.ID)
		}

		if !now.StartedAt.IsZero() {
			last[now.InstanceID] = now
		}
	}

	m.wrong = append(m.wrong, m.witness.wrong...)
}
