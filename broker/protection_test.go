package broker_test

import (
	"testing"

	"github.com/environment-broker/environment-broker/internal/environment"
	"github.com/environment-broker/environment-broker/process"
	"github.com/environment-broker/environment-broker/storage"
)

// edit changes the row of an instance.
func (b *fixture) edit(id string, change func(*environment.Instance)) {
	b.Helper()

	instance := b.stored(id)
	change(&instance)

	if err := b.options.DB.InTx(b.Context(), func(tx storage.Tx) error { return b.instances.Update(b.Context(), tx, instance) }); err != nil {
		b.Fatal(err)
	}
}

// TestDeletionProtection checks that the protection begins with a successful creation and ends with an update.
func TestDeletionProtection(t *testing.T) {
	const code = "DeletionProtected"

	protected := with("parameters", map[string]any{"region": "eu-west-1", "deletionProtection": true})
	unprotect := with("parameters", with("deletionProtection", false))

	onEach(t, func(b *fixture) {
		for state, reason := range map[process.State]string{
			process.InProgress: "platforms may cancel the creation", process.Failed: "platforms remove the rest of a failed creation",
		} {
			id := instanceID + string(state[:2])
			b.move(b.want("an order", b.put(id, order(protected)), 202).text("operation"), state)
			b.want(reason, b.remove(id), 202)
		}

		b.move(b.want("an order", b.put(instanceID, order(protected)), 202).text("operation"), process.Succeeded)
		b.want("a deletion", b.remove(instanceID), 422, code)
		b.want("a deletion by a job", b.do(call{
			method: "DELETE", path: path(instanceID) + "?accepts_incomplete=true" + ids, header: map[string]string{"User-Agent": "accountcleanup-job"},
		}), 422, code)
		b.want("a synchronous deletion", b.do(call{method: "DELETE", path: path(instanceID) + "?" + ids[1:]}), 422, "AsyncRequired")

		if carried := b.carried(instanceID); len(carried) != 1 {
			b.Errorf("a rejected deletion left operations: %+v", carried)
		}

		b.want("an update of something else keeps the protection", b.patch(instanceID, with("context", with("active", true))), 200)
		b.want("a deletion after it", b.remove(instanceID), 422, code)
		b.want("the end of the protection", b.patch(instanceID, unprotect), 200)

		if got := b.get(instanceID); got.Body["parameters"].(map[string]any)["deletionProtection"] != false {
			b.Errorf("the parameters after the update: %s", got.Raw)
		}

		deletion := b.want("a deletion without protection", b.remove(instanceID), 202).text("operation")
		b.move(deletion, process.Failed)
		b.edit(instanceID, func(instance *environment.Instance) { instance.DeletionProtection = true })
		b.want("a failed deletion is repeated", b.remove(instanceID), 202)
	})
}

// TestProtectionEndsWithExpiry checks that a protected instance can be deleted after it has expired.
func TestProtectionEndsWithExpiry(t *testing.T) {
	b := newFixture(t)
	b.provisioned(instanceID)

	b.edit(instanceID, func(instance *environment.Instance) {
		instance.DeletionProtection, instance.ExpiredAt = true, b.clock.Now()
	})
	b.want("a deletion", b.remove(instanceID), 202)
}

// TestProtectionWithOtherChanges checks that a protection takes effect when the update that contains it has succeeded, not before.
func TestProtectionWithOtherChanges(t *testing.T) {
	b := newFixture(t)
	b.provisioned(instanceID)

	update := b.want("an update of the cluster", b.patch(instanceID, with("parameters", map[string]any{"autoScalerMax": 9, "deletionProtection": true})), 202)

	var data struct {
		Update struct {
			DeletionProtection *bool `json:"deletionProtection"`
		} `json:"change"`
	}
	decoded(b, b.payload(update.text("operation")), &data)

	if b.stored(instanceID).DeletionProtection || data.Update.DeletionProtection == nil || !*data.Update.DeletionProtection {
		t.Errorf("protected before the update has ended: %t; the update has %v", b.stored(instanceID).DeletionProtection, data.Update.DeletionProtection)
	}
}
