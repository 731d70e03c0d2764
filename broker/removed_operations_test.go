package broker_test

import (
	"testing"
	"time"

	"github.com/environment-broker/environment-broker/process"
	"github.com/environment-broker/environment-broker/storage"
)

// drop removes operations, as the cleanup after their retention period does. Package broker/service tests that cleanup.
func (b *fixture) drop(ids ...string) {
	b.Helper()

	for _, statement := range []string{`UPDATE operations SET finished_at = created_at WHERE id IN (?)`, `DELETE FROM operations WHERE id IN (?)`} {
		if _, err := storage.Exec(b.Context(), b.options.DB.Writer(), statement, ids); err != nil {
			b.Fatal(err)
		}
	}
}

// TestRemovedOperations polls operations that were removed after their retention period. The response must not describe a different
// operation.
func TestRemovedOperations(t *testing.T) {
	onEach(t, func(b *fixture) {
		b.clock.SetTime(time.Date(2020, 1, 2, 3, 4, 5, 0, time.UTC)) // the database compares retention periods with its own clock
		b.operations.KeepFor(time.Hour)
		b.runs(instanceID)

		creation := b.carried(instanceID)[0].ID
		update := func(maximum int) string {
			b.later()

			id := b.want("an update", b.patch(instanceID, map[string]any{"parameters": map[string]any{"autoScalerMax": maximum}}), 202).text("operation")
			b.move(id, process.Succeeded)

			return id
		}

		removed, kept := update(11), update(12)
		b.drop(removed)

		if got := b.want("C6: the instance exists, so the status is neither 404 nor 410", b.poll(instanceID, removed), 400); got.text("description") !=
			"The operation parameter does not name an operation of this resource, or the operation was removed after its retention period." {
			b.Errorf("the description does not name the reason: %s", got.Raw)
		}

		for _, asked := range []string{kept, creation, "", "update", "provision"} {
			b.wantState("other operations of the instance: "+asked, b.poll(instanceID, asked), "succeeded")
		}

		b.want("the instance is not affected", b.get(instanceID), 200)
		b.later()

		deletion := b.want("a deletion", b.remove(instanceID), 202).text("operation")
		b.move(deletion, process.Succeeded)
		b.forget(instanceID)
		b.drop(creation, kept)

		b.want("C6: an ID with other operations", b.poll(instanceID, creation), 400)
		b.wantState("C8: the deletion", b.poll(instanceID, ""), "succeeded")

		b.drop(deletion)

		for _, asked := range []string{removed, deletion, "deprovision", ""} {
			b.want("C7: nothing is known about the instance: "+asked, b.poll(instanceID, asked), 404)
		}

		b.want("J5: a deletion", b.remove(instanceID), 410)
	})
}

// TestReusedIDWithRemovedOperations orders an instance with the ID of a deleted one whose creation, but not its deletion, was removed
// after its retention period. The new creation must be the newest operation of the ID.
func TestReusedIDWithRemovedOperations(t *testing.T) {
	onEach(t, func(b *fixture) {
		b.clock.SetTime(time.Date(2020, 1, 2, 3, 4, 5, 0, time.UTC)) // the database compares retention periods with its own clock
		b.operations.KeepFor(time.Hour)
		b.runs(instanceID)

		former := b.stored(instanceID).ShootName

		b.later()
		b.deleted(instanceID)
		b.drop(b.carried(instanceID)[1].ID)
		b.later()

		creation := b.provisioned(instanceID)
		b.wantState("C9: the new creation", b.poll(instanceID, ""), "succeeded")

		if newest := b.carried(instanceID)[0]; newest.ID != creation {
			b.Errorf("the newest operation is the %s of the former instance", newest.Kind)
		}

		if b.stored(instanceID).ShootName == former {
			b.Error("the new instance has the Shoot name of the former one")
		}

		b.want("D12: repeated", b.put(instanceID, order()), 200)
		b.want("the cluster is changed", b.patch(instanceID, with("parameters", with("autoScalerMax", 12))), 202)
	})
}
