package orchestration_test

import (
	"pgregory.net/rapid"

	"github.com/environment-broker/environment-broker/internal/environment"
	"github.com/environment-broker/environment-broker/internal/failure"
	"github.com/environment-broker/environment-broker/process"
	"github.com/environment-broker/environment-broker/storage"
)

// setKyma sets the version of an instance, as an upgrade or a rollback of Kyma does. It does nothing for upgrades of clusters.
func (m *modeled) setKyma(t *rapid.T, record *process.Record) {
	if m.want.kind != environment.KindUpgradeKyma {
		return
	}

	var data environment.Data
	if err := data.UnmarshalJSON(record.Payload); err != nil {
		t.Fatal(err)
	}

	rows := m.Conductor.Planner.Upgrader.Instances

	m.tx(func(tx storage.Tx) error {
		exists, err := rows.Exists(m.Context(), tx, record.InstanceID)
		if err != nil || !exists {
			return err
		}

		instance, err := rows.Get(m.Context(), tx, record.InstanceID)
		if err != nil {
			return err
		}

		data.Instance = instance
		changed := *instance.Request.Cluster.Kyma
		changed.Version = data.Upgrade.Version
		instance.Request.Cluster.Kyma = &changed

		return rows.Update(m.Context(), tx, instance)
	})

	var err error
	if record.Payload, err = data.MarshalJSON(); err != nil {
		t.Fatal(err)
	}
}

// undone returns the model of the undo: upgrades that have succeeded are rolled back, and those that have failed are left out.
func (m *model) undone() model {
	undo := model{
		state: "in progress", conducted: true, planned: true, workers: m.workers, regions: m.regions, wave: 1, now: m.now,
		kind: m.kind, ordered: m.now, isUndo: true, past: map[string]int{},
	}

	for _, target := range m.targets {
		undo.past[target.id] = m.past[target.id] + target.upgrades

		if target.deleted || target.state != "succeeded" && target.state != "failed" {
			continue
		}

		rollback := &modelTarget{id: target.id, region: target.region, wave: 1, busy: target.busy, state: "pending", notBefore: m.now}
		if target.state == "failed" {
			rollback.state = "left out"
		}

		undo.targets = append(undo.targets, rollback)
	}

	return undo
}

// undo rolls back the orchestration. The model continues with the undo.
func (m *modeled) undo(t *rapid.T) {
	former := m.id
	id, err := m.Undo(m.Context(), former, false)

	undo := m.want.undone()
	if m.want.isUndo || m.want.kind != environment.KindUpgradeKyma || !m.want.ended() || len(undo.in("pending")) == 0 {
		if !failure.Is(err, failure.Conflict) {
			t.Fatalf("an undo of what is %s: %v", m.want.state, err)
		}

		return
	}

	if err != nil {
		t.Fatal(err)
	}

	if again, err := m.Undo(m.Context(), former, false); err != nil || again != id {
		t.Fatalf("a repeated undo is %s, %v, want %s", again, err, id)
	}

	m.id, m.want = id, undo
}
