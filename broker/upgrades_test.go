package broker_test

import (
	"slices"
	"testing"
	"time"

	"github.com/environment-broker/environment-broker/broker/upgrade"
	"github.com/environment-broker/environment-broker/internal/environment"
	"github.com/environment-broker/environment-broker/process"
	"github.com/environment-broker/environment-broker/storage/storagetest"
)

// upgrading orders the upgrade of a cluster, as an operator does, and returns the ID of the operation.
func (b *fixture) upgrading(id string) string {
	b.Helper()

	accepted, err := upgrade.Upgrader{
		DB: b.options.DB, Instances: b.instances, Operations: b.operations, Catalog: b.options.Catalog, Wake: func() {}, Clock: b.clock,
	}.Upgrade(b.Context(), upgrade.Order{InstanceID: id, Kind: environment.KindUpgradeCluster})
	if err != nil {
		b.Fatal(err)
	}

	return accepted.OperationID
}

// TestPlatformsDuringUpgrades sends a platform's requests during an upgrade. The platform does not see the upgrade: last_operation
// still shows the platform's own operation, and changes have to wait.
func TestPlatformsDuringUpgrades(t *testing.T) {
	onEach(t, func(b *fixture) {
		created := b.provisioned(instanceID)
		upgrade := b.upgrading(instanceID)

		for _, state := range []process.State{process.Pending, process.InProgress, process.Failed} {
			if state != process.Pending {
				b.move(upgrade, state)
			}

			b.wantState("the newest operation of the platform", b.poll(instanceID, ""), "succeeded")
			b.wantState("the operation of the platform", b.poll(instanceID, created), "succeeded")
			b.want("the instance", b.get(instanceID), 200)

			if state.Terminal() {
				break
			}

			for reason, fields := range map[string]map[string]any{
				"a parameter": with("parameters", with("autoScalerMax", 12)),
				"the context": with("context", with("space_name", "x")),
				"nothing":     {},
			} {
				b.want("C4: a change of "+reason, b.patch(instanceID, fields), 422, "ConcurrencyError")
			}
		}

		b.want("a change after the upgrade", b.patch(instanceID, with("parameters", with("autoScalerMax", 12))), 202)
	})
}

// TestDeletionsDuringUpgrades deletes instances during an upgrade. The upgrade is due at once, so that it can end by itself, and the
// deletion runs after it.
func TestDeletionsDuringUpgrades(t *testing.T) {
	for _, state := range []process.State{process.Pending, process.InProgress} {
		onEach(t, func(b *fixture) {
			b.provisioned(instanceID)
			upgrade := b.upgrading(instanceID)

			if state == process.InProgress {
				b.move(upgrade, process.InProgress, func(record *process.Record) { record.NextRun = b.clock.Now().Add(time.Hour) })
			}

			b.want("C5: a deletion is accepted", b.remove(instanceID), 202)

			record, err := b.operations.Get(b.Context(), b.operations.Reader(), upgrade)
			if err != nil || record.State != state {
				b.Fatalf("the upgrade is %s, %v, want %s", record.State, err, state)
			}

			claimed := storagetest.Claim(b, b.operations, process.Claim{
				Owner: "test", Limit: 100, Now: b.clock.Now(), Until: b.clock.Now().Add(time.Minute),
			}, environment.Kinds()...)
			if len(claimed) != 1 || !slices.ContainsFunc(claimed, func(work process.Claimed) bool { return work.Record.ID == upgrade }) {
				b.Errorf("%d operations are due, want only the upgrade", len(claimed))
			}

			b.want("a repeated deletion", b.remove(instanceID), 202)
		})
	}
}
